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
from felrec.recommender import Queries
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
    leave_out: Rows  # items to exclude
    candidates: Rows | None  # ascending; None: the whole catalogue
    k: int
    ignored: tuple[str, ...]


def recommend(state: ServingState, questions: Sequence[Question], exposure: Exposure) -> list[BestItems]:
    """The best available items for each question. All questions about the whole catalogue are scored together."""
    wanted = [_wanted(state, question) for question in questions]
    rows = np.arange(len(state.items), dtype=np.int32)
    scores = iter(_scores(state, [one for one in wanted if one.candidates is None], rows))
    answers = []
    for question, one in zip(questions, wanted, strict=True):
        if one.candidates is None:
            found = _best(state, one, next(scores), rows)
        else:
            found = _best(state, one, _scores(state, [one], one.candidates)[0], one.candidates)
        exposure.add(np.array([row for row, _ in found], dtype=np.int32))
        known = one.user >= 0 or len(one.session) > 0
        items = scored_items(state, found, Recommendation)
        answers.append(BestItems(known, items, one.ignored, user=question.user))
    return answers


def scores_of(state: ServingState, users: Sequence[int], rows: Rows, sessions: Sequence[Rows] | None = None) -> Scores:
    """Scores (B, C) of items for users; a user without a row (-1) is represented by a session. Returns a copy."""
    stranger = len(state.users)  # the next free row: a user without a history
    who = np.array([user if user >= 0 else stranger for user in users], dtype=np.int32)
    pending = Pending.of([session.tolist() for session in sessions]) if sessions else Pending.none(len(who))
    queries = Queries(who, np.full(len(who), state.question_time), pending)
    return np.array(state.scorer.score(queries, rows).cpu().numpy())


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
    rows = state.items.rows(names)
    return rows[rows >= 0], tuple(name for name, row in zip(names, rows.tolist(), strict=True) if row < 0)


def _wanted(state: ServingState, question: Question) -> Wanted:
    user = -1 if question.user is None else state.users.row(question.user)
    session, unknown = known_items(state, question.session)
    leave_out = _NOTHING
    if state.model.exclude_seen if question.exclude_seen is None else question.exclude_seen:
        leave_out = state.index.seen(user) if user >= 0 else session
    candidates, ignored = _candidates(state, question.candidates, question.tags)
    return Wanted(user, session, leave_out, candidates, question.k, (*unknown, *ignored))


def _candidates(
    state: ServingState, names: Sequence[str] | None, tags: Sequence[str]
) -> tuple[Rows | None, tuple[str, ...]]:
    """The candidate rows, ascending, or None for all; and the names of unknown items."""
    if names is None:
        return (state.attributes.tagged(tags) if tags else None), ()
    rows, ignored = known_items(state, names)
    rows = np.unique(rows)
    return (np.intersect1d(rows, state.attributes.tagged(tags)) if tags else rows), ignored


def _scores(state: ServingState, wanted: Sequence[Wanted], rows: Rows) -> Scores:
    if not len(wanted) or not len(rows):
        return np.zeros((len(wanted), len(rows)), dtype=np.float32)
    return scores_of(state, [one.user for one in wanted], rows, [one.session for one in wanted])


def _best(state: ServingState, wanted: Wanted, scores: Scores, rows: Rows) -> Best:
    """The best of rows (C,) by their scores (C,), without excluded and hidden items; overwrites the scores."""
    for out in (wanted.leave_out, state.attributes.hidden):
        if len(out):
            scores[out if wanted.candidates is None else np.isin(rows, out)] = -np.inf
    return best(scores, rows, wanted.k)
