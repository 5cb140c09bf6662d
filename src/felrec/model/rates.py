"""How often evidence comes true on this log: of the pairs that looked alike, the share that was taken.

The same evidence is worth more on one log than on another: who bought a thing twice will buy it again, who saw a film
twice is a mistake of the log. Weights that were trained on other logs need not guess, they can read it here.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from felrec.data.events import RowChange
from felrec.model.horizons import Floats

EVERY = 4  # of so many events one is looked at, which is enough
_HALF_LIFE = 10_000  # of the counts, in events that were looked at
_AS_MANY = 100.0  # pairs of a cell count as much as what is known of its kind
_FAINT = 1e-5  # rates below this look the same
_ROUNDING = 1e-3  # whole numbers come back from a logarithm

_TIMES, _BACK, _STRENGTHS = 5, 8, 12  # steps of how often, how long ago, how strong
_SIZES = (_TIMES * _BACK * 2, _STRENGTHS * 2, _STRENGTHS * 2)  # cells of the user's own items, near items, next items
_STARTS = np.cumsum((0, *_SIZES[:-1]))
_KIND = np.repeat(np.arange(len(_SIZES)), _SIZES)
KINDS, CELLS = len(_SIZES), sum(_SIZES)
_PER_STEP = 1.6  # steps of strength for each unit of a logarithm

Cells = NDArray[np.int64]


def cells(count: Floats, back: Floats, sitting: Floats, near: Floats, after: Floats) -> Cells:
    """The cells (M, KINDS) that pairs fall in, -1 where there is nothing of a kind.

    An own item by how often the user took it, how many of their events ago, and whether in the last sitting; a near
    or next one by its strength, and whether it is an own item.
    """
    is_own = count > 0
    times = np.clip(np.log2(np.maximum(count, 1)).round(), 0, _TIMES - 1).astype(np.int64)
    ago = np.clip(np.log2(np.maximum(back, 1) + _ROUNDING), 0, _BACK - 1).astype(np.int64)
    own = (times * _BACK + ago) * 2 + (sitting > 0)
    reached = [
        np.clip(strength * _PER_STEP, 0, _STRENGTHS - 1).astype(np.int64) * 2 + is_own for strength in (near, after)
    ]
    there = np.stack([is_own, near > 0, after > 0], axis=1)
    return np.where(there, np.stack([own, *reached], axis=1) + _STARTS, -1)


class Rates:
    """Pairs and how many of them were taken, by cell, both fading.

    >>> rates, pairs = Rates(), np.array([[3, -1, -1], [3, -1, -1]])
    >>> rates.apply_change(rates.change(pairs, np.array([True, False]), events=1))
    >>> rates.state()["cells"][:, 3].tolist()
    [1.0, 2.0]
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self._counts = np.zeros((2, CELLS), dtype=np.float32)  # taken, and all

    def change(self, found: Cells, taken: NDArray[np.bool_], events: int) -> RowChange:
        """The counts after so many more events, with pairs in the cells `found` (M, KINDS)."""
        fresh = [np.bincount(some[some >= 0], minlength=CELLS) for some in (found[taken].ravel(), found.ravel())]
        counts = self._counts * np.float32(0.5 ** (events / _HALF_LIFE)) + np.stack(fresh)
        return {"cells": (np.arange(2, dtype=np.int32), counts.astype(np.float32))}

    def apply_change(self, change: RowChange) -> None:
        """Write what `change` returned."""
        rows, counts = change["cells"]
        self._counts[rows] = counts

    def features(self, found: Cells) -> Floats:
        """Logarithms (M, KINDS) of the rates of cells; 0 where there is nothing of a kind."""
        taken, pairs = self._counts
        of_kind = (np.bincount(_KIND, taken) + 0.01) / (np.bincount(_KIND, pairs) + 10)
        rate = (taken + _AS_MANY * of_kind[_KIND]) / (pairs + _AS_MANY)
        features: Floats = np.append(np.log(rate / _FAINT + 1) / 3, 0).astype(np.float32)[found]
        return features

    def state(self) -> dict[str, NDArray[np.generic]]:
        """A copy of the counts."""
        return {"cells": self._counts.copy()}

    def load_state(self, state: dict[str, NDArray[np.generic]]) -> None:
        """Put back what `state` returned."""
        self._counts = np.array(state["cells"], dtype=np.float32)
