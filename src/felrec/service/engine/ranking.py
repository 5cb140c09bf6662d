"""The best items for a batch of questions, and the rank of one item.

The caller holds the read lock, except for `item_ranks`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from felrec.abilities import Found, Selection
from felrec.answers.types import BestItems, Rank, Ranks, Recommendation
from felrec.data.events import Rows
from felrec.data.pending import Pending
from felrec.recommender import Queries
from felrec.service.engine.exploring import with_explored
from felrec.service.engine.exposure import Exposure
from felrec.service.engine.filters import Places, candidates_of, known_items, left_out, not_for
from felrec.service.engine.presenters import scored_items
from felrec.service.engine.serving_state import ServingState
from felrec.service.engine.types import Question

Scores = NDArray[np.floating]
Best = list[tuple[int, float]]  # rows and scores, best first
_RANKED = 8  # users for whom an item is ranked while the lock is held


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
    hidden = state.attributes.hidden_at(state.now)
    best_items = state.scorer.best(queries, [one.selection for one in wanted], len(state.items), hidden)
    answers = []
    for at, (question, one, found) in enumerate(zip(questions, wanted, best_items, strict=True)):
        if Places.needed(state, question):
            found = _fitting(state, question, queries[at : at + 1], one.selection, found, hidden)
        page = slice(question.offset, question.offset + question.k)
        rows, scores = found.rows[page], found.scores[page]
        exposure.add(rows, found.scored)
        known = one.user >= 0 or len(one.session) > 0
        items = scored_items(state, list(zip(rows.tolist(), scores.tolist(), strict=True)), Recommendation)
        items = with_explored(state, question, items)
        answers.append(BestItems(known, items, one.ignored, user=question.user))
    return answers


def _fitting(
    state: ServingState, question: Question, query: Queries, selection: Selection, found: Found, hidden: Rows
) -> Found:
    """The best items of which no two are of one group and not too many of one tag.

    Looks at twice as many of the best items until there are enough, or no more.
    """
    scored = found.scored
    while True:
        places = Places(state, question.per_tag)
        fit = [at for at, row in enumerate(found.rows.tolist()) if places.take(row)]
        if len(fit) >= question.offset + question.k or len(found.rows) < selection.k:
            return Found(found.rows[fit], found.scores[fit], scored)
        selection = selection._replace(k=2 * selection.k)
        (found,) = state.scorer.best(query, [selection], len(state.items), hidden)
        scored += found.scored


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


def _wanted(state: ServingState, question: Question) -> Wanted:
    user = -1 if question.user is None else state.users.row(question.user)
    session, unknown = known_items(state, question.session)
    candidates, ignored = candidates_of(state, question)
    out = left_out(state, question, not_for(state, question, user, session))
    selection = Selection(question.offset + question.k, out, candidates)
    return Wanted(user, session, selection, (*unknown, *ignored))
