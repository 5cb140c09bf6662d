"""The best items for a batch of questions, and the rank of one item.

The caller holds the read lock, except for `item_ranks`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from felrec.answers.types import BestItems, Rank, Ranks, Recommendation
from felrec.data.events import Rows
from felrec.data.pending import Pending
from felrec.recommender import Queries, Selection
from felrec.service.engine.exposure import Exposure
from felrec.service.engine.presenters import scored_items
from felrec.service.engine.serving_state import ServingState
from felrec.service.engine.types import Question

Scores = NDArray[np.floating]
Best = list[tuple[int, float]]  # rows and scores, best first
_RANKED = 8  # users for whom an item is ranked while the lock is held
_NOTHING = np.zeros(0, dtype=np.int32)


class Wanted(NamedTuple):
    """A question with rows instead of ids."""

    user: int  # -1: unknown
    session: Rows
    selection: Selection
    ignored: tuple[str, ...]


def recommend(state: ServingState, questions: Sequence[Question], exposure: Exposure) -> list[BestItems]:
    """The best available items for each question. All questions about the whole catalogue are scored together."""
    wanted = [_wanted(state, question) for question in questions]
    queries = _queries(state, [one.user for one in wanted], [one.session for one in wanted])
    selections = [one.selection for one in wanted]
    answers = []
    best_items = state.scorer.best(queries, selections, len(state.items), state.attributes.hidden)
    for question, one, found in zip(questions, wanted, best_items, strict=True):
        exposure.add(found.rows, found.scored)
        known = one.user >= 0 or len(one.session) > 0
        best_first = list(zip(found.rows.tolist(), found.scores.tolist(), strict=True))
        items = scored_items(state, best_first, Recommendation)
        answers.append(BestItems(known, items, one.ignored, user=question.user))
    return answers


def scores_of(state: ServingState, users: Sequence[int], rows: Rows) -> Scores:
    """Scores (B, C) of items for users, of whom some may have no row (-1)."""
    scores: Scores = state.scorer.score(_queries(state, users), rows).cpu().numpy()
    return scores


def _queries(state: ServingState, users: Sequence[int], sessions: Sequence[Rows] = ()) -> Queries:
    """Queries as of now; a user without a row (-1) is represented by a session."""
    stranger = len(state.users)  # the next free row: a user without a history
    who = np.array([user if user >= 0 else stranger for user in users], dtype=np.int32)
    pending = Pending.none(len(who))
    if any(map(len, sessions)):
        pending = Pending.of([session.tolist() for session in sessions])
    return Queries(who, np.full(len(who), state.question_time), pending)


def best(scores: Scores, rows: Rows, k: int) -> Best:
    """The k highest scores, without items that cannot be scored."""
    top = torch.topk(torch.from_numpy(scores), min(k, len(scores)))
    found = zip(rows[top.indices.numpy()].tolist(), top.values.tolist(), strict=True)
    return [(row, score) for row, score in found if score > -np.inf]


def item_ranks(state: ServingState, item: str, users: Sequence[str]) -> Ranks:
    """The rank of an item for each user and by decayed popularity. Takes the read lock for a few users at a time."""
    ranks = list[Rank]()
    for first in range(0, len(users), _RANKED):
        part = users[first : first + _RANKED]
        with state.lock.read():
            row, rows = state.known_row("item", item), np.arange(len(state.items), dtype=np.int32)
            scores = scores_of(state, state.users.rows(part).tolist(), rows)
            ranks += [Rank(user, _rank_among(of, row)) for user, of in zip(part, scores, strict=True)]
    with state.lock.read():
        row, rows = state.known_row("item", item), np.arange(len(state.items), dtype=np.int32)
        events, popularity = state.index.item_events, _rank_among(state.popularity.of(rows), row)
        return Ranks(item, int(events[row]), int((events > 0).sum()), tuple(ranks), popularity)


def _rank_among(scores: Scores, at: int) -> int | None:
    """The number of scores above the one at index `at`; None if that item cannot be scored."""
    return int((scores > scores[at]).sum()) if scores[at] > -np.inf else None


def known_items(state: ServingState, names: Sequence[str]) -> tuple[Rows, tuple[str, ...]]:
    """The rows of items, in order, and the names of unknown items."""
    if not names:  # a question without a session
        return _NOTHING, ()
    rows = state.items.rows(names)
    return rows[rows >= 0], tuple(name for name, row in zip(names, rows.tolist(), strict=True) if row < 0)


def _wanted(state: ServingState, question: Question) -> Wanted:
    user = -1 if question.user is None else state.users.row(question.user)
    session, unknown = known_items(state, question.session)
    leave_out = _NOTHING
    if state.model.exclude_seen if question.exclude_seen is None else question.exclude_seen:
        leave_out = np.sort(state.index.seen(user) if user >= 0 else session)
    candidates, ignored = _candidates(state, question.candidates, question.tags)
    return Wanted(user, session, Selection(question.k, leave_out, candidates), (*unknown, *ignored))


def _candidates(
    state: ServingState, names: Sequence[str] | None, tags: Sequence[str]
) -> tuple[Rows | None, tuple[str, ...]]:
    """The candidate rows, ascending, or None for all; and the names of unknown items."""
    if names is None:
        return (state.attributes.tagged(tags) if tags else None), ()
    rows, ignored = known_items(state, names)
    rows = np.unique(rows)
    return (np.intersect1d(rows, state.attributes.tagged(tags)) if tags else rows), ignored
