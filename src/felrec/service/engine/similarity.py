"""Compare items by what the same users take, users and items by their vectors.

The caller holds the read lock, except for `match_all`.
"""

from __future__ import annotations

import numpy as np
from torch import Tensor

from felrec.data.events import Rows
from felrec.errors import InvalidRequest
from felrec.recommender import Linking, Representing
from felrec.service.engine.ranking import Best, Scores, best
from felrec.service.engine.serving_state import ServingState
from felrec.service.engine.types import Side

_PIECE = 8_192  # vectors compared while the lock is held: about a millisecond


def vectors_of(state: ServingState, side: Side, rows: Rows) -> Tensor:
    """Unit vectors (B, D). InvalidRequest if the model has none."""
    model = state.recommender
    if not isinstance(model, Representing):
        raise InvalidRequest(
            f"{state.model.name} has no vectors to compare; serve a felrec model that has the signal vectors"
        )
    return model.user_vectors(rows) if side == "user" else model.item_vectors(rows)


def match_all(state: ServingState, side: Side, vector: Tensor) -> Scores:
    """Cosine of every user or item with a vector (D,).

    The read lock is taken for some rows at a time, so that the writer never waits for all of them.
    """
    count = len(state.directory(side))
    parts = [np.zeros(0, dtype=np.float32)]
    for first in range(0, count, _PIECE):
        rows = np.arange(first, min(first + _PIECE, count), dtype=np.int32)
        with state.lock.read():
            parts.append((vectors_of(state, side, rows) @ vector).cpu().numpy())
    return np.concatenate(parts)


def nearest(state: ServingState, side: Side, scores: Scores, k: int, leave_out: Rows) -> Best:
    """The best users or items by scores (N,) from `match_all`, except `leave_out`; overwrites the scores."""
    events = state.event_counts(side)
    scores[leave_out[leave_out < len(scores)]] = -np.inf
    scores[: len(events)][events[: len(scores)] == 0] = -np.inf  # erased
    return best(scores, np.arange(len(scores), dtype=np.int32), k)


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
