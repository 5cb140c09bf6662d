"""Compare users and items by their vectors. The caller holds the read lock, except for `match_all`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from felrec.answers.types import Reason
from felrec.data.events import Rows
from felrec.errors import InvalidRequest
from felrec.recommender import Representing
from felrec.service.engine.ranking import Best, Scores, best, known_items
from felrec.service.engine.serving_state import ServingState
from felrec.service.engine.types import Side

_PIECE = 8_192  # vectors compared while the lock is held: about a millisecond
_HISTORY = 64  # newest items of a user that can explain a recommendation


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


def reasons_for(state: ServingState, user: str, items: Sequence[str], k: int) -> list[tuple[Reason, ...]]:
    """For each item, the k most similar items of the user's history; empty without a history or vectors."""
    row, (known, _) = state.users.row(user), known_items(state, items)
    if row < 0 or not len(known) or not isinstance(state.recommender, Representing):
        return [() for _ in items]
    history = np.array(list(dict.fromkeys(state.index.seen(row)[::-1].tolist()))[:_HISTORY], dtype=np.int32)
    weights = (vectors_of(state, "item", known) @ vectors_of(state, "item", history).T).cpu().numpy()
    found = {item: _heaviest(state, item, weights[at], history, k) for at, item in enumerate(known.tolist())}
    return [found.get(state.items.row(item), ()) for item in items]


def _heaviest(state: ServingState, item: int, weights: Scores, history: Rows, k: int) -> tuple[Reason, ...]:
    """The k items of a history with the highest weights, without the item itself."""
    order = [at for at in np.argsort(-weights).tolist() if history[at] != item][:k]
    names = [state.items.name(int(history[at])) for at in order]
    return tuple(
        Reason(name, state.attributes.of(name).title, float(weights[at])) for name, at in zip(names, order, strict=True)
    )
