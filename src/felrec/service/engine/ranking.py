"""Reading: scores, and who or what is near. The caller holds the read lock, but for `match_all`."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from felrec.data.events import Rows
from felrec.data.pending import Pending
from felrec.errors import InvalidRequest, NotFound
from felrec.recommender import Queries, Representing
from felrec.service.engine.serving_state import ServingState
from felrec.service.engine.types import Side

Scores = NDArray[np.floating]
Best = list[tuple[int, float]]  # rows and scores, best first
_PIECE = 8_192  # vectors that are compared while the lock is held: about a millisecond


def scores_of(state: ServingState, users: Sequence[int], rows: Rows, sessions: Sequence[Rows] | None = None) -> Scores:
    """Scores (B, C) of items for users, or for those without a row (-1) who had sessions; a copy."""
    stranger = len(state.users)  # the next free row: somebody without a history
    who = np.array([user if user >= 0 else stranger for user in users], dtype=np.int32)
    pending = Pending.of([session.tolist() for session in sessions]) if sessions else Pending.none(len(who))
    queries = Queries(who, np.full(len(who), max(state.clock, time.time())), pending)
    return np.array(state.scorer.score(queries, rows).cpu().numpy())


def best(scores: Scores, rows: Rows, k: int) -> Best:
    """The k highest scores, without what cannot be scored."""
    top = torch.topk(torch.from_numpy(scores), min(k, len(scores)))
    found = zip(rows[top.indices.numpy()].tolist(), top.values.tolist(), strict=True)
    return [(row, score) for row, score in found if score > -np.inf]


def representing(state: ServingState) -> Representing:
    """The model, if it has vectors."""
    if not isinstance(state.recommender, Representing):
        raise InvalidRequest(f"{state.model.name} has no vectors to compare; serve a felrec model")
    return state.recommender


def vectors_of(state: ServingState, side: Side, rows: Rows) -> Tensor:
    """Unit vectors (B, D)."""
    model = representing(state)
    return model.user_vectors(rows) if side == "user" else model.item_vectors(rows)


def match_all(state: ServingState, side: Side, vector: Tensor) -> Scores:
    """Cosine of every user or item with a vector (D,).

    The read lock is taken for some rows at a time, so that nobody who writes waits for the whole.
    """
    count = len(state.users if side == "user" else state.items)
    parts = [np.zeros(0, dtype=np.float32)]
    for first in range(0, count, _PIECE):
        rows = np.arange(first, min(first + _PIECE, count), dtype=np.int32)
        with state.lock.read():
            parts.append((vectors_of(state, side, rows) @ vector).cpu().numpy())
    return np.concatenate(parts)


def nearest(state: ServingState, side: Side, scores: Scores, k: int, leave_out: Rows) -> Best:
    """The users or items that match best by the scores (N,) of all who were there a moment ago; overwrites them."""
    events = state.index.user_events if side == "user" else state.index.item_events
    scores[leave_out[leave_out < len(scores)]] = -np.inf
    scores[: len(events)][events[: len(scores)] == 0] = -np.inf  # erased
    return best(scores, np.arange(len(scores), dtype=np.int32), k)


def known_row(state: ServingState, side: Side, name: str) -> int:
    """The row of a user or an item with events; NotFound if there is none."""
    row = (state.users if side == "user" else state.items).row(name)
    if row < 0:
        raise NotFound(f"the {side} is not known: it has no event, or was erased")
    return row


def known_items(state: ServingState, names: Sequence[str]) -> tuple[Rows, tuple[str, ...]]:
    """The rows of items, in order, and the names without one."""
    rows = state.items.rows(names)
    return rows[rows >= 0], tuple(name for name, row in zip(names, rows.tolist(), strict=True) if row < 0)


def rank_among(scores: Scores, at: int) -> int | None:
    """How many are better than the one at this place; None if it cannot be scored."""
    return int((scores > scores[at]).sum()) if scores[at] > -np.inf else None
