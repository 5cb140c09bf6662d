"""Who and what is alike: items that the same users take, users near to an item or a user.

The caller holds the read lock, except for functions that return `Matches`: these take it for some rows at a time, so
that the writer never waits for all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from torch import Tensor

from felrec.abilities import Linking, Representing
from felrec.data.events import Rows
from felrec.errors import InvalidRequest
from felrec.service.engine.ranking import Best, Scores, best, scores_of
from felrec.service.engine.serving_state import ServingState
from felrec.service.engine.types import Side

_PIECE = 8_192  # cached vectors compared while the lock is held: about a millisecond
_COUNTED_PIECE = 64  # users scored, or vectors counted and compared, while the lock is held: a few milliseconds


class Matches(NamedTuple):
    """Users or items, and how well each of them matches."""

    rows: Rows
    scores: Scores


def vectors_of(state: ServingState, side: Side, rows: Rows) -> Tensor:
    """Unit vectors (B, D). InvalidRequest if the model has none."""
    model = state.recommender
    if not isinstance(model, Representing):
        raise InvalidRequest(f"{state.model.name} has no vectors to compare; serve a felrec model")
    return model.user_vectors(rows) if side == "user" else model.item_vectors(rows)


def audience_of(state: ServingState, item: int) -> Matches:
    """Users who lately took what is taken with an item, by its score for them; without counts all users, by cosine."""
    with state.lock.read():
        near = state.recommender.users_near_item(item) if isinstance(state.recommender, Linking) else None
    if near is None:
        return _all_by_cosine(state, "item", item, "user")
    return score_for_users(state, near, item)


def neighbours_of(state: ServingState, user: int) -> Matches:
    """Users who lately took the same items, or, without counts, all users; by cosine."""
    with state.lock.read():
        near = state.recommender.users_near_user(user) if isinstance(state.recommender, Linking) else None
    if near is None:
        return _all_by_cosine(state, "user", user, "user")
    return alike(state, "user", user, near)


def items_like(state: ServingState, item: int) -> Matches:
    """All items by cosine."""
    return _all_by_cosine(state, "item", item, "item")


def score_for_users(state: ServingState, users: Rows, item: int) -> Matches:
    """Users, and the score of an item for each of them."""
    return _in_pieces(state, users, _COUNTED_PIECE, lambda some: scores_of(state, some.tolist(), _row(item))[:, 0])


def scores_for_user(state: ServingState, user: int, items: Rows) -> Matches:
    """Items, and their scores for a user."""
    return _in_pieces(state, items, _PIECE, lambda some: scores_of(state, [user], some)[0])


def alike(state: ServingState, side: Side, row: int, others: Rows) -> Matches:
    """Users or items, and the cosine of each with one of them."""
    return _by_cosine(state, side, row, side, others, _COUNTED_PIECE)


def _all_by_cosine(state: ServingState, of: Side, row: int, side: Side) -> Matches:
    every = np.arange(len(state.directory(side)), dtype=np.int32)
    return _by_cosine(state, of, row, side, every, _PIECE)


def _by_cosine(state: ServingState, of: Side, row: int, side: Side, rows: Rows, piece: int) -> Matches:
    with state.lock.read():
        vector = vectors_of(state, of, _row(row))[0]
    return _in_pieces(state, rows, piece, lambda part: (vectors_of(state, side, part) @ vector).cpu().numpy())


def _in_pieces(state: ServingState, rows: Rows, piece: int, ask: Callable[[Rows], Scores]) -> Matches:
    parts = [np.zeros(0, dtype=np.float32)]
    for first in range(0, len(rows), piece):
        with state.lock.read():
            parts.append(ask(rows[first : first + piece]))
    return Matches(rows, np.concatenate(parts))


def _row(row: int) -> Rows:
    return np.array([row], dtype=np.int32)


def nearest(state: ServingState, side: Side, matches: Matches, k: int, leave_out: Rows) -> Best:
    """The best users or items of matches, except `leave_out` and erased ones."""
    events = state.event_counts(side)
    known = matches.rows < len(events)
    there = known & (events[np.where(known, matches.rows, 0)] > 0) & ~np.isin(matches.rows, leave_out)
    return best(matches.scores[there], matches.rows[there], k)


def counted_together(state: ServingState, item: int, k: int) -> Best | None:
    """The k available items that most users took together with an item; None if the model does not count that."""
    model = state.recommender
    linked = model.linked_items(item) if isinstance(model, Linking) else None
    if linked is None:
        return None
    there = (state.event_counts("item")[linked.rows] > 0) & ~np.isin(linked.rows, state.attributes.hidden_at(state.now))
    return list(zip(linked.rows[there][:k].tolist(), linked.scores[there][:k].tolist(), strict=True))


def most_similar(state: ServingState, item: int, history: Rows, k: int) -> Rows:
    """The k items of a history whose vectors are nearest to that of an item, without the item itself."""
    others: Rows = history[history != item]
    if not len(others) or not isinstance(state.recommender, Representing):
        return np.zeros(0, dtype=np.int32)
    vectors = vectors_of(state, "item", np.append(others, item).astype(np.int32))
    cosines = (vectors[:-1] @ vectors[-1]).cpu().numpy()
    nearest_first: Rows = others[np.argsort(-cosines, kind="stable")]
    return nearest_first[:k]
