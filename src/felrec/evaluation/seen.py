"""Items that are not ranked for an event: those its user has already, and other targets of the same moment."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from felrec.data.events import Events
from felrec.data.pending import grouped, spread


class SeenItems:
    """Every user's items in time order, indexed once for a whole log; or only those of `some` of the events."""

    def __init__(self, events: Events, some: NDArray[np.bool_] | None = None) -> None:
        order, first = grouped(events.users)
        kept = np.ones(len(order), dtype=bool) if some is None else some[order]
        before = np.append(0, np.cumsum(kept))  # how many are kept before each place
        self._items = events.items[order][kept]
        self._start = np.empty(len(order), dtype=np.int64)
        self._stop = np.empty(len(order), dtype=np.int64)
        self._start[order] = before[first]
        self._stop[order] = before[:-1]

    def before(self, start: int, stop: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Pairs (position of the event in start:stop, item) of all earlier items of the event's user."""
        at, positions = spread(self._start[start:stop], self._stop[start:stop])
        return positions, self._items[at]


def never_ranked(events: Events, exclude_seen: bool) -> SeenItems | None:
    """The items that are not ranked for users who had them, or who had an event that speaks against them."""
    if exclude_seen:
        return SeenItems(events)
    if events.weights is None or not (events.weights < 0).any():
        return None
    return SeenItems(events, events.weights < 0)


class Simultaneous:
    """The items of each user's events at one time: when one of them is the target, the others are not ranked."""

    def __init__(self, events: Events) -> None:
        moments = np.unique(events.times, return_inverse=True)[1]
        together = np.unique(np.stack([events.users, moments]), axis=1, return_inverse=True)[1].ravel()
        order, first = grouped(together)
        _, counts = np.unique(together, return_counts=True)
        self._items = events.items[order]
        self._start = np.empty(len(order), dtype=np.int64)
        self._start[order] = first
        self._stop = self._start + counts[together]

    def of(self, start: int, stop: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Pairs (position of the event in start:stop, item) of its user's items at its time, its own among them."""
        at, positions = spread(self._start[start:stop], self._stop[start:stop])
        return positions, self._items[at]
