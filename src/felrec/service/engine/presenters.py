"""Rows as records with names and titles. The caller holds the read lock."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from felrec.data.events import Rows
from felrec.service.engine.ranking import Best
from felrec.service.engine.serving_state import ServingState
from felrec.service.engine.types import Named, PastEvent, Reason, ScoredItem, ScoredUser


def scored_items(state: ServingState, best: Best) -> tuple[ScoredItem, ...]:
    """Items with what is shown of them."""
    names = [state.items.name(row) for row, _ in best]
    shown = [state.catalogue.of(name) for name in names]
    return tuple(
        ScoredItem(name, score, attributes.title, attributes.tags)
        for name, attributes, (_, score) in zip(names, shown, best, strict=True)
    )


def scored_users(state: ServingState, best: Best) -> list[ScoredUser]:
    """Users."""
    return [ScoredUser(state.users.name(row), score) for row, score in best]


def reasons(state: ServingState, item: int, weights: NDArray[np.floating], history: Rows, k: int) -> tuple[Reason, ...]:
    """The k items of a history that weigh most, without the item itself."""
    order = [at for at in np.argsort(-weights).tolist() if history[at] != item][:k]
    names = [state.items.name(int(history[at])) for at in order]
    return tuple(
        Reason(name, state.catalogue.of(name).title, float(weights[at])) for name, at in zip(names, order, strict=True)
    )


def past_events(state: ServingState, items: Sequence[int], times: Sequence[float]) -> tuple[PastEvent, ...]:
    """A history; a time of NaN is not known."""
    names = [state.items.name(item) for item in items]
    return tuple(
        PastEvent(name, state.catalogue.of(name).title, None if math.isnan(moment) else moment)
        for name, moment in zip(names, times, strict=True)
    )


def named_users(state: ServingState, rows: Sequence[int]) -> list[Named]:
    """Users to choose from."""
    return [Named(state.users.name(row), None, int(state.index.user_events[row])) for row in rows]


def named_item(state: ServingState, name: str) -> Named:
    """An item to choose, with or without events."""
    row = state.items.row(name)
    events = int(state.index.item_events[row]) if row >= 0 else 0
    return Named(name, state.catalogue.of(name).title, events)
