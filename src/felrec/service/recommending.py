"""Recommendations for several who ask at once. The caller holds the read lock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from felrec.data.events import Rows
from felrec.service.bias import Exposure
from felrec.service.ranking import Best, Scores, best, known_items, scores_of
from felrec.service.records import Question, Recommendations
from felrec.service.replica import Replica
from felrec.service.shapes import scored_items

_NOTHING = np.zeros(0, dtype=np.int32)


class Wanted(NamedTuple):
    """A question in rows."""

    user: int  # -1: nobody who is known
    session: Rows
    leave_out: Rows  # items they had
    candidates: Rows | None  # ascending; None: the whole catalogue
    k: int
    ignored: tuple[str, ...]


def recommend(replica: Replica, questions: Sequence[Question], exposure: Exposure) -> list[Recommendations]:
    """The best available items for each. All who ask about the whole catalogue are scored together."""
    wanted = [_wanted(replica, question) for question in questions]
    rows = np.arange(len(replica.items), dtype=np.int32)
    scores = iter(_scores(replica, [one for one in wanted if one.candidates is None], rows))
    answers = []
    for one in wanted:
        if one.candidates is None:
            found = _best(replica, one, next(scores), rows)
        else:
            found = _best(replica, one, _scores(replica, [one], one.candidates)[0], one.candidates)
        exposure.add(np.array([row for row, _ in found], dtype=np.int32))
        known = one.user >= 0 or len(one.session) > 0
        answers.append(Recommendations(scored_items(replica, found), known, one.ignored))
    return answers


def _wanted(replica: Replica, question: Question) -> Wanted:
    user = -1 if question.user is None else replica.users.row(question.user)
    session, unknown = known_items(replica, question.session)
    leave_out = _NOTHING
    if replica.model.exclude_seen if question.exclude_seen is None else question.exclude_seen:
        leave_out = replica.ledger.seen(user) if user >= 0 else session
    candidates, ignored = _candidates(replica, question.candidates, question.tags)
    return Wanted(user, session, leave_out, candidates, question.k, (*unknown, *ignored))


def _candidates(
    replica: Replica, names: Sequence[str] | None, tags: Sequence[str]
) -> tuple[Rows | None, tuple[str, ...]]:
    """The rows to choose from, ascending, None for all; and the names that have none."""
    if names is None:
        return (replica.catalogue.tagged(tags) if tags else None), ()
    rows, ignored = known_items(replica, names)
    rows = np.unique(rows)
    return (np.intersect1d(rows, replica.catalogue.tagged(tags)) if tags else rows), ignored


def _scores(replica: Replica, wanted: Sequence[Wanted], rows: Rows) -> Scores:
    if not len(wanted) or not len(rows):
        return np.zeros((len(wanted), len(rows)), dtype=np.float32)
    return scores_of(replica, [one.user for one in wanted], rows, [one.session for one in wanted])


def _best(replica: Replica, wanted: Wanted, scores: Scores, rows: Rows) -> Best:
    """The best of rows (C,) by their scores (C,), without what is left out; overwrites the scores."""
    for out in (wanted.leave_out, replica.catalogue.out):
        if len(out):
            scores[out if wanted.candidates is None else np.isin(rows, out)] = -np.inf
    return best(scores, rows, wanted.k)
