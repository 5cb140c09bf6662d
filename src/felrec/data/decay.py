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
    [0.5, 1.25, 0.0]
    """

    def __init__(self, half_life: float | None) -> None:
        self.half_life = half_life
        self.mass: NDArray[np.float64] = np.zeros(0)  # (items,)

    def add(self, items: Rows) -> None:
        """Take in events in time order: all that came before ages by them, and each by those after it."""
        missing = int(items.max(initial=-1)) + 1 - len(self.mass)
        if missing > 0:
            self.mass = np.concatenate([self.mass, np.zeros(missing)])
        weights = np.ones(len(items))
        if self.half_life is not None:
            self.mass *= 0.5 ** (len(items) / self.half_life)
            weights = 0.5 ** (np.arange(len(items) - 1, -1, -1) / self.half_life)
        np.add.at(self.mass, items, weights)

    def of(self, items: Rows) -> NDArray[np.float64]:
        """The counts of `items`; 0 for one that never came, and for row -1, nobody."""
        known = (items >= 0) & (items < len(self.mass))
        counts = np.zeros(len(items))
        counts[known] = self.mass[items[known]]
        return counts
