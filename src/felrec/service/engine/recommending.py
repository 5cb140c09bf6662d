"""Recommendations for several who ask at once. The caller holds the read lock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from felrec.data.events import Rows
from felrec.service.engine.exposure import Exposure
from felrec.service.engine.presenters import scored_items
from felrec.service.engine.ranking import Best, Scores, best, known_items, scores_of
from felrec.service.engine.serving_state import ServingState
from felrec.service.engine.types import Question, Recommendations

_NOTHING = np.zeros(0, dtype=np.int32)


class Wanted(NamedTuple):
    """A question in rows."""

    user: int  # -1: nobody who is known
    session: Rows
    leave_out: Rows  # items they had
    candidates: Rows | None  # ascending; None: the whole catalogue
    k: int
    ignored: tuple[str, ...]


def recommend(state: ServingState, questions: Sequence[Question], exposure: Exposure) -> list[Recommendations]:
    """The best available items for each. All who ask about the whole catalogue are scored together."""
    wanted = [_wanted(state, question) for question in questions]
    rows = np.arange(len(state.items), dtype=np.int32)
    scores = iter(_scores(state, [one for one in wanted if one.candidates is None], rows))
    answers = []
    for one in wanted:
        if one.candidates is None:
            found = _best(state, one, next(scores), rows)
        else:
            found = _best(state, one, _scores(state, [one], one.candidates)[0], one.candidates)
        exposure.add(np.array([row for row, _ in found], dtype=np.int32))
        known = one.user >= 0 or len(one.session) > 0
        answers.append(Recommendations(scored_items(state, found), known, one.ignored))
    return answers


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
    """The rows to choose from, ascending, None for all; and the names that have none."""
    if names is None:
        return (state.catalogue.tagged(tags) if tags else None), ()
    rows, ignored = known_items(state, names)
    rows = np.unique(rows)
    return (np.intersect1d(rows, state.catalogue.tagged(tags)) if tags else rows), ignored


def _scores(state: ServingState, wanted: Sequence[Wanted], rows: Rows) -> Scores:
    if not len(wanted) or not len(rows):
        return np.zeros((len(wanted), len(rows)), dtype=np.float32)
    return scores_of(state, [one.user for one in wanted], rows, [one.session for one in wanted])


def _best(state: ServingState, wanted: Wanted, scores: Scores, rows: Rows) -> Best:
    """The best of rows (C,) by their scores (C,), without what is left out; overwrites the scores."""
    for out in (wanted.leave_out, state.catalogue.out):
        if len(out):
            scores[out if wanted.candidates is None else np.isin(rows, out)] = -np.inf
    return best(scores, rows, wanted.k)
