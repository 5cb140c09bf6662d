"""Rows as records with names and titles. The caller holds the read lock."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from felrec.data.events import Rows
from felrec.service.ranking import Best
from felrec.service.records import Named, PastEvent, Reason, ScoredItem, ScoredUser
from felrec.service.replica import Replica


def scored_items(replica: Replica, best: Best) -> tuple[ScoredItem, ...]:
    """Items with what is shown of them."""
    names = [replica.items.name(row) for row, _ in best]
    shown = [replica.catalogue.of(name) for name in names]
    return tuple(
        ScoredItem(name, score, attributes.title, attributes.tags)
        for name, attributes, (_, score) in zip(names, shown, best, strict=True)
    )


def scored_users(replica: Replica, best: Best) -> list[ScoredUser]:
    """Users."""
    return [ScoredUser(replica.users.name(row), score) for row, score in best]


def reasons(replica: Replica, item: int, weights: NDArray[np.floating], history: Rows, k: int) -> tuple[Reason, ...]:
    """The k items of a history that weigh most, without the item itself."""
    order = [at for at in np.argsort(-weights).tolist() if history[at] != item][:k]
    names = [replica.items.name(int(history[at])) for at in order]
    return tuple(
        Reason(name, replica.catalogue.of(name).title, float(weights[at]))
        for name, at in zip(names, order, strict=True)
    )


def past_events(replica: Replica, items: Sequence[int], times: Sequence[float]) -> tuple[PastEvent, ...]:
    """A history; a time of NaN is not known."""
    names = [replica.items.name(item) for item in items]
    return tuple(
        PastEvent(name, replica.catalogue.of(name).title, None if math.isnan(moment) else moment)
        for name, moment in zip(names, times, strict=True)
    )


def named_users(replica: Replica, rows: Sequence[int]) -> list[Named]:
    """Users to choose from."""
    return [Named(replica.users.name(row), None, int(replica.ledger.user_events[row])) for row in rows]


def named_item(replica: Replica, name: str) -> Named:
    """An item to choose, with or without events."""
    row = replica.items.row(name)
    events = int(replica.ledger.item_events[row]) if row >= 0 else 0
    return Named(name, replica.catalogue.of(name).title, events)
