"""Event counts that fade: what is popular now."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from felrec.data.events import RowChange, Rows

HALF_LIVES = (30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)
"""In events of the log: what a half-life is chosen from."""


class DecayedCounts:
    """Events of each item, each weighing half as much after every `half_life` events of the log; None never fades.

    A count is kept as it was at the item's last event, together with the number of that event, and fades when it is
    read. So an event changes one row, however large the catalogue is.

    >>> counts = DecayedCounts(half_life=1)
    >>> counts.add(np.array([7, 3, 7], dtype=np.int32))
    >>> counts.of(np.array([3, 7, 9], dtype=np.int32)).tolist()
    [0.5, 1.25, -inf]
    """

    def __init__(self, half_life: float | None) -> None:
        self.half_life = half_life
        self.events = 0  # of the log, so far
        self.mass: NDArray[np.float64] = np.zeros(0)  # (items,) as of the event below
        self.last: NDArray[np.int64] = np.zeros(0, dtype=np.int64)  # (items,) number of its last event, 0: none

    def add(self, items: Rows) -> None:
        """Take in events in time order."""
        self.apply_change(self.change(items))

    def change(self, items: Rows) -> RowChange:
        """The counts of the items that events touch, once these are taken in."""
        touched, place = np.unique(items, return_inverse=True)
        after = self.events + len(items)
        known = touched < len(self.mass)
        mass = np.zeros(len(touched))
        mass[known] = self.mass[touched[known]] * self._faded(after - self.last[touched[known]])
        np.add.at(mass, place, self._faded(np.arange(len(items) - 1, -1, -1)))
        last, whole = np.full(len(touched), after), np.zeros(1, dtype=np.int32)
        return {"mass": (touched, mass), "last": (touched, last), "events": (whole, np.array([after]))}

    def apply_change(self, change: RowChange) -> None:
        """Write what `change` returned."""
        (items, mass), (_, last) = change["mass"], change["last"]
        needed = int(items.max(initial=-1)) + 1
        if needed > len(self.mass):
            room = max(needed, 2 * len(self.mass)) - len(self.mass)  # by doubling, so that growth stays cheap
            self.last = np.concatenate([self.last, np.zeros(room, dtype=np.int64)])
            self.mass = np.concatenate([self.mass, np.zeros(room)])
        self.mass[items], self.last[items] = mass, last
        self.events = int(np.array(change["events"][1], dtype=np.int64)[0])

    def forget(self, items: Rows, taken: NDArray[np.int64], left: NDArray[np.int64]) -> RowChange:
        """The counts of distinct items once some of their events are taken away, whichever these were.

        Exact where nothing fades. Else an item keeps as large a part of its count as of its events.
        """
        mass = left.astype(np.float64)
        if self.half_life is not None:
            mass *= self.mass[items] / (taken + left)
        last, whole = np.where(left > 0, self.last[items], 0), np.zeros(1, dtype=np.int32)
        return {"mass": (items, mass), "last": (items, last), "events": (whole, np.array([self.events]))}

    def of(self, items: Rows) -> NDArray[np.float64]:
        """The counts of `items`; -inf for one that never came, and for row -1, nobody."""
        known = (items >= 0) & (items < len(self.mass))
        known[known] = self.last[items[known]] > 0
        counts = np.full(len(items), -np.inf)
        rows = items[known]
        counts[known] = self.mass[rows] * self._faded(self.events - self.last[rows])
        return counts

    def state(self) -> dict[str, NDArray[np.generic]]:
        """A copy of the counts, up to the last item that has one."""
        rows = int(np.flatnonzero(self.last).max(initial=-1)) + 1
        return {"mass": self.mass[:rows].copy(), "last": self.last[:rows].copy(), "events": np.array([self.events])}

    def load_state(self, state: dict[str, NDArray[np.generic]]) -> None:
        """Put back what `state` returned."""
        self.mass = np.array(state["mass"], dtype=np.float64)
        self.last = np.array(state["last"], dtype=np.int64)
        self.events = int(np.array(state["events"], dtype=np.int64)[0])

    def _faded(self, events: NDArray[np.int64]) -> NDArray[np.float64]:
        """What is left of a weight of one after so many events."""
        return np.ones(len(events)) if self.half_life is None else np.exp2(-events / self.half_life)
