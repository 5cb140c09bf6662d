"""Exponentially decayed event counts: current popularity."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from felrec.data.events import RowChange, Rows
from felrec.data.tables.growing import GrowingArray
from felrec.data.tables.table import TableState

HALF_LIFE_CHOICES = (30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)
"""Candidate half-lives, in events of the log."""


class DecayedCounts:
    """Events of each item, whose weight halves with every `half_life` events of the log; with None it never decays.

    A count is stored as of the item's last event, together with the number of that event, and decayed when it is
    read. So an event changes one row, regardless of the size of the catalogue.

    >>> counts = DecayedCounts(half_life=1)
    >>> counts.add(np.array([7, 3, 7], dtype=np.int32))
    >>> counts.of(np.array([3, 7, 9], dtype=np.int32)).tolist()
    [0.5, 1.25, -inf]
    """

    def __init__(self, half_life: float | None) -> None:
        self.half_life = half_life
        self.events = 0  # number of events of the log so far
        self._mass = GrowingArray(np.float64)  # (items,) count as of the item's last event
        self._last = GrowingArray(np.int64)  # (items,) number of the item's last event; 0: none

    def clear(self) -> None:
        """Remove all counts."""
        self.events = 0
        self._mass.clear()
        self._last.clear()

    def add(self, items: Rows) -> None:
        """Count events in time order."""
        self.apply_change(self.change(items))

    def change(self, items: Rows) -> RowChange:
        """The new counts of the items of these events."""
        touched, place = np.unique(items, return_inverse=True)
        after = self.events + len(items)
        mass = self._mass.read(touched) * self._faded(after - self._last.read(touched))
        np.add.at(mass, place, self._faded(np.arange(len(items) - 1, -1, -1)))
        return self._placed(touched, mass, np.full(len(touched), after), after)

    def apply_change(self, change: RowChange) -> None:
        """Write what `change` returned."""
        self._mass.write(*change["mass"])
        self._last.write(*change["last"])
        self.events = int(change["events"][1][0])

    def forget(self, items: Rows, taken: NDArray[np.int64], left: NDArray[np.int64]) -> RowChange:
        """The counts of distinct items after some of their events are removed; it does not matter which.

        Exact without decay. With decay, an item keeps the same share of its count as of its events.
        """
        mass = left.astype(np.float64)
        if self.half_life is not None:
            mass *= self._mass.read(items) / (taken + left)
        return self._placed(items, mass, np.where(left > 0, self._last.read(items), 0), self.events)

    def of(self, items: Rows) -> NDArray[np.float64]:
        """The counts of `items`; -inf for one without events, and for row -1."""
        last = self._last.read(items)
        return np.where(last > 0, self._mass.read(items) * self._faded(self.events - last), -np.inf)

    def view(self) -> TableState:
        """The counts, without a copy."""
        return {"mass": self._mass.values, "last": self._last.values, "events": np.array([self.events])}

    def state(self) -> TableState:
        """A copy of the counts, up to the last item with events."""
        rows = int(np.flatnonzero(self._last.values).max(initial=-1)) + 1
        mass, last = self._mass.values[:rows].copy(), self._last.values[:rows].copy()
        return {"mass": mass, "last": last, "events": np.array([self.events])}

    def load_state(self, state: TableState) -> None:
        """Replace all counts by what `state` returned."""
        self._mass.load(state["mass"])
        self._last.load(state["last"])
        self.events = int(state["events"][0])

    def _placed(self, items: Rows, mass: NDArray[np.float64], last: NDArray[np.int64], events: int) -> RowChange:
        whole = np.zeros(1, dtype=np.int32)  # the number of events is a table of one row
        return {"mass": (items, mass), "last": (items, last), "events": (whole, np.array([events]))}

    def _faded(self, events: NDArray[np.int64]) -> NDArray[np.float64]:
        """The remaining share of a weight after this many events."""
        return np.ones(len(events)) if self.half_life is None else np.exp2(-events / self.half_life)
