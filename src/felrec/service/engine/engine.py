"""The engine: one recommender, one store, one writer, many readers."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from itertools import islice

import numpy as np

from felrec.errors import InvalidRequest, NotFound
from felrec.fitted import FittedModel
from felrec.recommender import Representing
from felrec.service.engine.batch_scorer import BatchScorer
from felrec.service.engine.committer import Committer, Progress
from felrec.service.engine.exposure import Exposure
from felrec.service.engine.idempotency import IdempotencyStore
from felrec.service.engine.identity import begin, check_identity
from felrec.service.engine.ingest import IngestThread
from felrec.service.engine.limits import Limits
from felrec.service.engine.presenters import named_item, named_users, past_events, reasons, scored_items, scored_users
from felrec.service.engine.ranking import (
    Scores,
    known_items,
    known_row,
    match_all,
    nearest,
    rank_among,
    scores_of,
    vectors_of,
)
from felrec.service.engine.serving_state import ServingState
from felrec.service.engine.submissions import Submission
from felrec.service.engine.types import (
    Attributes,
    Bias,
    Erasure,
    Health,
    IdempotencyKey,
    ItemInfo,
    ItemRanks,
    Named,
    NewEvent,
    Question,
    RankOf,
    Reason,
    Receipt,
    Recommendations,
    Rejected,
    ScoredItem,
    ScoredUser,
    Side,
    UserInfo,
    Vectors,
)
from felrec.store.protocol import Contents, Store

_log = logging.getLogger(__name__)
_COLD = 5  # an item with fewer events is cold
_HISTORY = 64  # newest items of a user that a recommendation is explained by
_RANKED = 8  # users that an item is ranked for while the lock is held


class Engine:
    """Takes events in and answers from what it has taken in. All methods may be called from any thread."""

    def __init__(
        self, store: Store, model: FittedModel, contents: Contents, limits: Limits, progress: Progress | None
    ) -> None:
        """Use `Engine.open`."""
        self.limits = limits
        self.notes = dict(contents.notes)  # at the start: what imports wrote about themselves
        self.base = contents.identity.base  # the log and split whose state the store began with
        self._store = store
        self._state = ServingState(model, contents)
        answers = IdempotencyStore(limits.answer_hours * 3_600, store)
        self._committer = Committer(store, self._state, answers, limits.block, contents.applied)
        self._committer.catch_up(contents, progress)
        self._ingest = IngestThread(self._committer, answers, limits)
        self._exposure = Exposure()
        self._scorer = BatchScorer(self._state, self._exposure)
        self._started = time.time()

    @classmethod
    def open(
        cls,
        store: Store,
        model: FittedModel,
        *,
        limits: Limits | None = None,
        empty: bool = False,
        progress: Progress | None = None,
    ) -> Engine:
        """An engine over a store: `Engine.open(SqliteStore(path), runs.load(run))`.

        A new store begins with the model's state after validation, or with nothing if `empty`. One that has begun gives
        its own state back if it was made with the same model and weights, else StoreMismatch. The engine takes the
        model and the store over, and closes the store when it is closed. `progress` is told of events that had to be
        taken in again.
        """
        try:
            if store.is_empty:
                begin(store, model, empty=empty)
            contents = store.load()
            check_identity(store, contents.identity, model)
            behind = len(contents.blocks) - 1 - contents.applied
            if behind:
                _log.info("%s: taking in %d blocks of the journal again", store.name, behind)
            return cls(store, model, contents, limits or Limits(), progress)
        except BaseException:
            store.close()
            raise

    # Writing

    def submit(
        self,
        events: Sequence[NewEvent],
        key: IdempotencyKey | None = None,
        rejected: Sequence[Rejected] = (),
        notes: Mapping[str, str] | None = None,
    ) -> Future[Receipt]:
        """Take events in; the future resolves once all are on disk and visible, or fails with StoreFull or KeyConflict.

        Raises InvalidRequest (too many events), Overloaded (`retry_after`), KeyConflict, Stopped. `rejected` are rows
        that the caller refused: they only go into the receipt. The same key and body again give the first receipt.
        `notes` become durable together with the events.
        """
        submission = Submission.of(events, rejected, key, notes)
        if not len(submission):
            submission.future.set_result(Receipt(0, 0, submission.rejected, self._state.events))
            return submission.future
        return self._ingest.submit(submission)

    def put_item(self, item: str, attributes: Attributes) -> ItemInfo:
        """Set all attributes of an item, known or not. Returns when it is on disk."""
        if len(attributes.title or "") > self.limits.title_characters or len(attributes.tags) > self.limits.tags:
            most = f"{self.limits.title_characters:,} characters and {self.limits.tags} tags"
            raise InvalidRequest(f"the title or the list of tags is too long; at most {most}")
        self._ingest.run(lambda: self._committer.put_attributes(item, attributes))
        return self.item(item)

    def delete_item(self, item: str) -> None:
        """Take an item out: its attributes go, and it is not recommended until it is put again. NotFound if unknown.

        Its events stay: they belong to the users who took it.
        """
        self.item(item)
        self._ingest.run(lambda: self._committer.put_attributes(item, None))

    def erase_user(self, user: str) -> Erasure:
        """Remove a user: id, events, history, vector, also from the free pages of the file. NotFound if unknown."""
        erasure: Erasure = self._ingest.run(lambda: self._committer.erase(known_row(self._state, "user", user)))
        return erasure

    # Asking

    def ask(self, question: Question) -> Future[Recommendations]:
        """The best k available items for somebody, known or not. What waits at the same time is answered together."""
        self._bounded(question.k)
        self._bounded_ids(question.session)
        self._bounded_ids(question.candidates or ())
        return self._scorer.ask(question)

    def recommend(
        self,
        user: str,
        k: int = 10,
        *,
        exclude_seen: bool | None = None,
        candidates: Sequence[str] | None = None,
        tags: Sequence[str] = (),
    ) -> Recommendations:
        """Ask for a user, and wait."""
        return self.ask(Question(user, (), k, exclude_seen, candidates, tags)).result()

    def recommend_session(
        self,
        items: Sequence[str],
        k: int = 10,
        *,
        exclude_seen: bool | None = None,
        candidates: Sequence[str] | None = None,
        tags: Sequence[str] = (),
    ) -> Recommendations:
        """Ask for somebody without a name who had these items, oldest first, and wait. Keeps nothing."""
        return self.ask(Question(None, items, k, exclude_seen, candidates, tags)).result()

    def why(self, user: str, items: Sequence[str], k: int = 3) -> list[tuple[Reason, ...]]:
        """For each item the k items of the user's history that weigh most for it, by cosine of their vectors.

        Nothing where there is no history, or where the model has no vectors.
        """
        with self._state.lock.read():
            state, row = self._state, self._state.users.row(user)
            known, _ = known_items(state, self._bounded_ids(items))
            if row < 0 or not len(known) or not isinstance(state.recommender, Representing):
                return [() for _ in items]
            history = np.array(list(dict.fromkeys(state.index.seen(row)[::-1].tolist()))[:_HISTORY], dtype=np.int32)
            weights = (vectors_of(state, "item", known) @ vectors_of(state, "item", history).T).cpu().numpy()
            found = {item: reasons(state, item, weights[at], history, k) for at, item in enumerate(known.tolist())}
            return [found.get(state.items.row(item), ()) for item in items]

    def similar_items(self, item: str, k: int = 10) -> list[ScoredItem]:
        """The available items nearest to this one. NotFound without an event, InvalidRequest without vectors."""
        row, scores = self._matches("item", item, "item")
        with self._state.lock.read():
            out = np.append(self._state.catalogue.out, row)
            return list(scored_items(self._state, nearest(self._state, "item", scores, self._bounded(k), out)))

    def audience(self, item: str, k: int = 10) -> list[ScoredUser]:
        """The users to show an item to: those who match it best and have not had it."""
        row, scores = self._matches("item", item, "user")
        with self._state.lock.read():
            had = self._state.index.users[self._state.index.of_item(row)]
            return scored_users(self._state, nearest(self._state, "user", scores, self._bounded(k), had))

    def neighbours(self, user: str, k: int = 10) -> list[ScoredUser]:
        """The users nearest to this one."""
        row, scores = self._matches("user", user, "user")
        with self._state.lock.read():
            near = nearest(self._state, "user", scores, self._bounded(k), np.array([row]))
            return scored_users(self._state, near)

    def item_ranks(self, item: str, users: Sequence[str]) -> ItemRanks:
        """The rank of an item in the whole catalogue for each user, and by decayed popularity. NotFound if unknown."""
        state, ranks = self._state, list[RankOf]()
        for first in range(0, len(self._bounded_ids(users)), _RANKED):
            some = users[first : first + _RANKED]
            with state.lock.read():
                row, rows = known_row(state, "item", item), np.arange(len(state.items), dtype=np.int32)
                scores = scores_of(state, state.users.rows(some).tolist(), rows)
                ranks += [RankOf(user, rank_among(of, row)) for user, of in zip(some, scores, strict=True)]
        with state.lock.read():
            row, rows = known_row(state, "item", item), np.arange(len(state.items), dtype=np.int32)
            events = state.index.item_events
            popularity = rank_among(state.popularity.of(rows), row)
            return ItemRanks(item, int(events[row]), int((events > 0).sum()), tuple(ranks), popularity)

    def user(self, user: str, limit: int = 100) -> UserInfo:
        """A user and their newest events. NotFound if unknown."""
        with self._state.lock.read():
            state, row = self._state, known_row(self._state, "user", user)
            places = state.index.of_user(row)[::-1][: self._bounded(limit)]
            items, times = state.index.items[places].tolist(), state.index.times[places].tolist()
            history = past_events(state, items, times)
            return UserInfo(user, int(state.index.user_events[row]), history)

    def item(self, item: str) -> ItemInfo:
        """An item and its attributes. NotFound if it has neither events nor attributes, or was taken out."""
        with self._state.lock.read():
            state, row = self._state, self._state.items.row(item)
            if state.catalogue.is_taken_out(item):
                raise NotFound("the item was deleted; put it to recommend it again")
            if row < 0 and item not in state.catalogue:
                raise NotFound("no such item; put it, or post an event of it")
            return ItemInfo(item, *state.catalogue.of(item), int(state.index.item_events[row]) if row >= 0 else 0)

    def search_users(self, prefix: str, k: int = 10) -> list[Named]:
        """Users whose id begins so, in order of their ids."""
        with self._state.lock.read():
            found = self._state.users.starting(prefix, self._bounded(k))
            return named_users(self._state, self._state.users.rows(found).tolist())

    def search_items(self, prefix: str, k: int = 10) -> list[Named]:
        """Items with a word of the title that begins so, ignoring case, then those whose id does."""
        with self._state.lock.read():
            catalogue = self._state.catalogue
            titled = catalogue.titled(prefix, self._bounded(k)) if prefix else []
            found = dict.fromkeys([*titled, *self._state.items.starting(prefix, k, catalogue.is_taken_out)])
            return [named_item(self._state, name) for name in islice(found, k)]

    def known(self, side: Side, ids: Sequence[str]) -> list[str]:
        """Those of some users or items that there are."""
        with self._state.lock.read():
            directory = self._state.users if side == "user" else self._state.items
            return [name for name, row in zip(ids, directory.rows(ids).tolist(), strict=True) if row >= 0]

    def sample_users(self, k: int = 10) -> list[Named]:
        """Some users with a history, spread evenly; the same ones until the store changes."""
        with self._state.lock.read():
            events = self._state.index.user_events
            least = min(_COLD, int(events.max(initial=0)))
            rows = np.flatnonzero(events >= max(1, least))
            chosen = rows[np.linspace(0, len(rows) - 1, min(self._bounded(k), len(rows))).astype(np.int64)]
            return named_users(self._state, chosen.tolist())

    def vectors(self, side: Side, limit: int = 1_000, ids: Sequence[str] | None = None) -> Vectors:
        """Vectors of the users or items with most events, or of those named. InvalidRequest without vectors."""
        with self._state.lock.read():
            directory = self._state.users if side == "user" else self._state.items
            events = self._state.index.user_events if side == "user" else self._state.index.item_events
            if ids is None:
                rows = np.argsort(-events, kind="stable")[:limit].astype(np.int32)
                rows = rows[events[rows] > 0]
            else:
                rows = directory.rows(ids)
                rows = rows[rows >= 0]
            values = vectors_of(self._state, side, rows).cpu().numpy().astype(np.float32)
            return Vectors(side, tuple(map(directory.name, rows.tolist())), values)

    def match(self, side: Side, ids: Sequence[str], *, user: str | None = None, item: str | None = None) -> list[float]:
        """Cosine of each of the users or items `ids` with one user or one item; 0 for unknown ones."""
        if (user is None) == (item is None):
            raise InvalidRequest("name either a user or an item to match with")
        with self._state.lock.read():
            of: Side = "user" if item is None else "item"
            row = np.array([known_row(self._state, of, str(user if item is None else item))], dtype=np.int32)
            rows = (self._state.users if side == "user" else self._state.items).rows(ids)
            vector = vectors_of(self._state, of, row)[0]
            scores: list[float] = (vectors_of(self._state, side, rows) @ vector).cpu().tolist()
            return scores

    def health(self) -> Health:
        """The numbers of the engine; never waits for the writer."""
        state, commits = self._state, self._committer.commits
        events = state.index.item_events
        return Health(
            ready=not self._committer.broken,
            durable=commits.problem is None,
            problem=commits.problem,
            model=state.model.name,
            events=state.events,
            journal=state.journal,
            users=state.users.known,
            items=state.items.known,
            cold_items=int(((events > 0) & (events < _COLD)).sum()),
            queue=self._ingest.waiting,
            queue_limit=self.limits.queue,
            clock=state.clock,
            commit_milliseconds=1_000 * commits.seconds,
            commits=commits.count,
            applied_milliseconds=1_000 * commits.applied_seconds,
            store_bytes=self._store.size(),
            started=self._started,
        )

    def bias(self) -> Bias:
        """How the last recommendations fell on the catalogue."""
        with self._state.lock.read():
            events = self._state.index.item_events.copy()
        return self._exposure.bias(events)

    def close(self, drain: bool = True) -> None:
        """Stop: take no more events, finish those that wait (or fail them with Stopped), close the store."""
        self._ingest.close(drain)
        self._scorer.close()
        self._store.close()

    # What the answers are made of

    def _bounded(self, k: int) -> int:
        if not 1 <= k <= self.limits.k:
            raise InvalidRequest(f"{k} entries were asked for; ask for 1 to {self.limits.k:,}")
        return k

    def _bounded_ids(self, names: Sequence[str]) -> Sequence[str]:
        if len(names) > self.limits.ids:
            raise InvalidRequest(f"{len(names):,} ids; name at most {self.limits.ids:,}")
        return names

    def _matches(self, of: Side, name: str, side: Side) -> tuple[int, Scores]:
        """The row of a user or an item, and how well all users or items match it. NotFound if unknown."""
        with self._state.lock.read():
            row = known_row(self._state, of, name)
            vector = vectors_of(self._state, of, np.array([row], dtype=np.int32))[0]
        return row, match_all(self._state, side, vector)
