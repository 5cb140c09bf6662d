"""Event counts that fade: what is popular now."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from felrec.data.events import Rows

HALF_LIVES = (30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)
"""In events of the log: what a half-life is chosen from."""


class DecayedCounts:
    """Events of each item, each weighing half as much after every `half_life` events of the log; None never fades.

    >>> counts = DecayedCounts(half_life=1)
    >>> counts.add(np.array([7, 3, 7], dtype=np.int32))
    >>> counts.of(np.array([3, 7, 9], dtype=np.int32)).tolist()
    [0.5, 1.25, -inf]
    """

    def __init__(self, half_life: float | None) -> None:
        self.half_life = half_life
        self.mass: NDArray[np.float64] = np.zeros(0)  # (items,)
        self.seen: NDArray[np.bool_] = np.zeros(0, dtype=bool)  # apart: an old count may fade to nothing

    def add(self, items: Rows) -> None:
        """Take in events in time order: all that came before ages by them, and each by those after it."""
        needed = int(items.max(initial=-1)) + 1
        if needed > len(self.mass):
            room = max(needed, 2 * len(self.mass)) - len(self.mass)  # by doubling, so that growth stays cheap
            self.mass = np.concatenate([self.mass, np.zeros(room)])
            self.seen = np.concatenate([self.seen, np.zeros(room, dtype=bool)])
        weights = np.ones(len(items))
        if self.half_life is not None:
            self.mass *= 0.5 ** (len(items) / self.half_life)
            weights = 0.5 ** (np.arange(len(items) - 1, -1, -1) / self.half_life)
        np.add.at(self.mass, items, weights)
        self.seen[items] = True

    def of(self, items: Rows) -> NDArray[np.float64]:
        """The counts of `items`; -inf for one that never came, and for row -1, nobody."""
        known = (items >= 0) & (items < len(self.mass))
        known[known] = self.seen[items[known]]
        counts = np.full(len(items), -np.inf)
        counts[known] = self.mass[items[known]]
        return counts

    def state(self) -> dict[str, NDArray[np.generic]]:
        """A copy of the counts."""
        return {"mass": self.mass.copy(), "seen": self.seen.copy()}

    def load_state(self, state: dict[str, NDArray[np.generic]]) -> None:
        """Put back what `state` returned."""
        self.mass = np.array(state["mass"], dtype=np.float64)
        self.seen = np.array(state["seen"], dtype=bool)
