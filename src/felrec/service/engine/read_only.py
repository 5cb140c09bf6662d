"""Answers from memory: recommendations, neighbours, users, items. Nothing here writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import wraps
from itertools import islice
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from felrec.answers.statistics import Evenness
from felrec.answers.types import (
    BestItems,
    FoundItem,
    FoundUser,
    Item,
    NearItem,
    NearUser,
    Ranks,
    Reason,
    User,
)
from felrec.errors import InvalidRequest, NotFound
from felrec.service.engine.batch_scorer import BatchScorer
from felrec.service.engine.exposure import Exposure
from felrec.service.engine.health import COLD
from felrec.service.engine.limits import Limits
from felrec.service.engine.listing import Sorting, listed, trending_for
from felrec.service.engine.presenters import found_item, found_users, history_entries, scored_items, scored_users
from felrec.service.engine.ranking import item_ranks
from felrec.service.engine.reasons import reasons_for
from felrec.service.engine.serving_state import ServingState
from felrec.service.engine.similarity import (
    Matches,
    alike,
    audience_of,
    counted_together,
    items_like,
    nearest,
    neighbours_of,
    score_for_users,
    scores_for_user,
    vectors_of,
)
from felrec.service.engine.types import Question, Side, Vectors

P = ParamSpec("P")
T = TypeVar("T")


def _while_rows_stay(
    ask: Callable[Concatenate[ReadOnlyEngine, P], list[T]],
) -> Callable[Concatenate[ReadOnlyEngine, P], list[T]]:
    """Ask again if rows came to mean other users and items while the lock was not held."""

    @wraps(ask)
    def asking(self: ReadOnlyEngine, /, *given: P.args, **named: P.kwargs) -> list[T]:
        while True:
            generation = self._state.generation
            try:
                answer = ask(self, *given, **named)
            except Exception:
                if generation == self._state.generation:
                    raise
            else:
                if generation == self._state.generation:
                    return answer

    return asking


class ReadOnlyEngine:
    """Answers questions about a state that another thread may change. All methods may be called from any thread."""

    def __init__(self, state: ServingState, limits: Limits) -> None:
        self.limits = limits
        self._state = state
        self._exposed = state.generation  # that of the rows whose exposure is recorded
        self._exposure = Exposure()
        self._scorer = BatchScorer(state, self._exposure)

    def ask(self, question: Question) -> Future[BestItems]:
        """The best k available items. Queued questions are answered together."""
        return self._scorer.ask(self._checked(question))

    def recommend(self, user: str, k: int = 10, **options: Any) -> BestItems:
        """Ask for a user and wait for the answer. `options` are fields of `Question`."""
        return self.ask(Question(user, (), k, **options)).result()

    def recommend_session(self, items: Sequence[str], k: int = 10, **options: Any) -> BestItems:
        """Ask for an anonymous user with these items, oldest first, and wait for the answer. Stores nothing."""
        return self.ask(Question(None, items, k, **options)).result()

    def list_items(self, sort: Sorting, question: Question, hours: float | None = None) -> list[FoundItem]:
        """The available items that are trending, popular or newest, for nobody in particular.

        With `hours` only those with an event in the last hours, and `popular` counts these events only.
        """
        with self._state.lock.read():
            return listed(self._state, sort, self._checked(question), hours)

    def trending(self, question: Question) -> BestItems:
        """What the model's answer is compared with: the trending items that pass the rules of a question."""
        with self._state.lock.read():
            return trending_for(self._state, self._checked(question))

    def why(self, user: str, items: Sequence[str], k: int = 3) -> list[tuple[Reason, ...]]:
        """For each item, at most k reasons: what raises its score for this user, that of the largest share first."""
        with self._state.lock.read():
            return reasons_for(self._state, user, self._bounded_ids(items), k)

    @_while_rows_stay
    def similar_items(self, item: str, k: int = 10) -> list[NearItem]:
        """The available items that the same users take, or, if the model does not count them, with the nearest vectors.

        NotFound without an event, InvalidRequest if the model has neither.
        """
        self._bounded(k)
        with self._state.lock.read():
            near = counted_together(self._state, self._state.known_row("item", item), k)
            if near is not None:
                return list(scored_items(self._state, near, NearItem))
        row, matches = self._matches(items_like, "item", item)
        with self._state.lock.read():
            out = np.append(self._state.attributes.hidden_at(self._state.now), row)
            return list(scored_items(self._state, nearest(self._state, "item", matches, k, out), NearItem))

    @_while_rows_stay
    def audience(self, item: str, k: int = 10) -> list[NearUser]:
        """The users to show an item to: those who match it best and do not have it yet; at most k."""
        self._bounded(k)
        row, matches = self._matches(audience_of, "item", item)
        with self._state.lock.read():
            had = self._state.index.users[self._state.index.of_item(row)]
            return scored_users(self._state, nearest(self._state, "user", matches, k, had))

    @_while_rows_stay
    def neighbours(self, user: str, k: int = 10) -> list[NearUser]:
        """The users nearest to this one; at most k."""
        self._bounded(k)
        row, matches = self._matches(neighbours_of, "user", user)
        with self._state.lock.read():
            return scored_users(self._state, nearest(self._state, "user", matches, k, np.array([row])))

    def item_ranks(self, item: str, users: Sequence[str]) -> Ranks:
        """The rank of an item in the whole catalogue for each user, and by decayed popularity. NotFound if unknown."""
        return item_ranks(self._state, item, self._bounded_ids(users))

    def user(self, user: str, limit: int = 100) -> User:
        """A user and their newest events. NotFound if unknown."""
        with self._state.lock.read():
            state, row = self._state, self._state.known_row("user", user)
            places = state.index.of_user(row)[::-1][: self._bounded(limit)]
            items, times = state.index.items[places].tolist(), state.index.times[places].tolist()
            history = history_entries(state, items, times)
            return User(user, int(state.index.user_events[row]), history)

    def item(self, item: str) -> Item:
        """An item and its attributes. NotFound if it has neither events nor attributes, or was deleted."""
        with self._state.lock.read():
            state, row = self._state, self._state.items.row(item)
            if state.attributes.is_deleted(item):
                raise NotFound("the item was deleted; put it to recommend it again")
            if row < 0 and item not in state.attributes:
                raise NotFound("no such item; put it, or post an event with it")
            events = int(state.index.item_events[row]) if row >= 0 else 0
            return Item(id=item, events=events, **state.attributes.of(item)._asdict())

    def search_users(self, prefix: str, k: int = 10) -> list[FoundUser]:
        """Users whose id starts with `prefix`, sorted by id."""
        with self._state.lock.read():
            found = self._state.users.starting(prefix, self._bounded(k))
            return found_users(self._state, self._state.users.rows(found).tolist())

    def search_items(self, prefix: str, k: int = 10) -> list[FoundItem]:
        """Items with a word of the title that starts with `prefix`, ignoring case, then items whose id does."""
        with self._state.lock.read():
            attributes = self._state.attributes
            titled = attributes.search_titles(prefix, self._bounded(k)) if prefix else []
            found = dict.fromkeys([*titled, *self._state.items.starting(prefix, k, attributes.is_deleted)])
            return [found_item(self._state, name) for name in islice(found, k)]

    def known(self, side: Side, ids: Sequence[str]) -> list[str]:
        """Those of `ids` that are known."""
        with self._state.lock.read():
            directory = self._state.directory(side)
            return [name for name, row in zip(ids, directory.rows(ids).tolist(), strict=True) if row >= 0]

    def sample_users(self, k: int = 10) -> list[FoundUser]:
        """A sample of users with a history, evenly spread; it is the same until the store changes."""
        with self._state.lock.read():
            events = self._state.index.user_events
            least = min(COLD, int(events.max(initial=0)))
            rows = np.flatnonzero(events >= max(1, least))
            chosen = rows[np.linspace(0, len(rows) - 1, min(self._bounded(k), len(rows))).astype(np.int64)]
            return found_users(self._state, chosen.tolist())

    def vectors(self, side: Side, limit: int = 1_000, ids: Sequence[str] | None = None) -> Vectors:
        """Vectors of the users or items with most events, or of `ids`. InvalidRequest if the model has no vectors."""
        with self._state.lock.read():
            directory = self._state.directory(side)
            events = self._state.event_counts(side)
            if ids is None:
                rows = np.argsort(-events, kind="stable")[:limit].astype(np.int32)
                rows = rows[events[rows] > 0]
            else:
                rows = directory.rows(ids)
                rows = rows[rows >= 0]
            values = vectors_of(self._state, side, rows).cpu().numpy().astype(np.float32)
            return Vectors(side, tuple(map(directory.name, rows.tolist())), values)

    def match(self, side: Side, ids: Sequence[str], *, user: str | None = None, item: str | None = None) -> list[float]:
        """How well users or items match one user or one item: by score across the sides, by cosine within one.

        Ids that are unknown, and items that cannot be scored, match worst.
        """
        if (user is None) == (item is None):
            raise InvalidRequest("give either a user or an item to match with")
        of: Side = "user" if item is None else "item"
        with self._state.lock.read():
            row = self._state.known_row(of, str(user if item is None else item))
            rows = self._state.directory(side).rows(ids)
        known = rows >= 0
        if side == of:
            matches = alike(self._state, side, row, rows[known])
        elif side == "user":
            matches = score_for_users(self._state, rows[known], row)
        else:
            matches = scores_for_user(self._state, row, rows[known])
        scores = np.full(len(rows), -np.inf)
        scores[known] = matches.scores
        lowest = scores.min(initial=0, where=np.isfinite(scores))
        return [float(score) for score in np.where(np.isfinite(scores), scores, lowest)]

    def bias(self) -> Evenness:
        """How evenly the last recommendations were spread over the catalogue.

        Never waits for the lock: a change that waits for a slow reader would hold up those who look after the service.
        """
        generation, events = -1, self._state.event_counts("item")
        while generation != self._state.generation:  # rows mean others, and it is rare, if it changes in between
            generation, events = self._state.generation, self._state.event_counts("item").copy()
        if generation != self._exposed:
            self._exposure.forget()
            self._exposed = generation
        return self._exposure.bias(events)

    def _checked(self, question: Question) -> Question:
        """InvalidRequest if a question is beyond a limit."""
        self._bounded(question.k)
        if not 0 <= question.offset <= self.limits.k:
            raise InvalidRequest(f"offset={question.offset}: must be between 0 and {self.limits.k:,}")
        for names in (question.session, question.candidates or (), question.exclude):
            self._bounded_ids(names)
        if question.per_tag is not None and question.per_tag < 1:
            raise InvalidRequest(f"per_tag={question.per_tag}: must be at least 1")
        if not 0 <= question.explore <= 1:
            raise InvalidRequest(f"explore={question.explore}: must be between 0 and 1")
        return question

    def _bounded(self, k: int) -> int:
        if not 1 <= k <= self.limits.k:
            raise InvalidRequest(f"{k} entries are out of range; ask for 1 to {self.limits.k:,}")
        return k

    def _bounded_ids(self, names: Sequence[str]) -> Sequence[str]:
        if len(names) > self.limits.ids:
            raise InvalidRequest(f"{len(names):,} ids are too many; give at most {self.limits.ids:,}")
        return names

    def _matches(self, find: Callable[[ServingState, int], Matches], of: Side, name: str) -> tuple[int, Matches]:
        """The row of a user or an item, and what matches it. NotFound if unknown."""
        with self._state.lock.read():
            row = self._state.known_row(of, name)
        return row, find(self._state, row)
