"""A cache whose unwritten rows read as deterministic random vectors, the seeds.

Identity thus propagates along interactions without weights or storage: two items with the same users become similar,
two users without common items stay dissimilar.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from felrec.data.hashing import splitmix64
from felrec.model.paper.cache import Cache


def seeds(rows: NDArray[np.integer], width: int, side: int) -> Tensor:
    """Unit vectors (…, width) of random signs that depend only on the row and the side.

    >>> bool(torch.equal(seeds(np.array([5]), 64, 0), seeds(np.array([5]), 64, 0)))
    True
    >>> round(float(seeds(np.array([5]), 64, 0)[0] @ seeds(np.array([6]), 64, 0)[0]), 1)
    -0.1
    """
    words = np.arange(-(-width // 64), dtype=np.uint64)
    numbers = (rows.astype(np.int64).astype(np.uint64) * np.uint64(2) + np.uint64(side))[..., None]
    mixed = splitmix64(numbers * np.uint64(len(words)) + words)
    bits = (mixed[..., None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
    signs = bits.reshape(*rows.shape, 64 * len(words))[..., :width].astype(np.float32) * 2 - 1
    return torch.from_numpy(signs / np.float32(math.sqrt(width)))


class SeededCache(Cache):
    """A cache whose missing entries are seeds instead of zeros; row -1 (padding) is still zero."""

    def __init__(self, width: int, side: int, device: torch.device | str = "cpu") -> None:
        self.side = side
        super().__init__(width, device)

    def read(self, rows: NDArray[np.integer]) -> Tensor:
        """Vectors (…, D) of `rows` (…)."""
        vectors = super().read(rows)
        beyond = rows >= len(self)
        if beyond.any():
            at = torch.from_numpy(beyond).to(self.device)
            vectors[at] = seeds(rows[beyond], self.width, self.side).to(self.device)
        return vectors

    def unwritten(self, rows: NDArray[np.integer]) -> Tensor:
        """The vectors that rows (B,) have before they are written."""
        return seeds(rows, self.width, self.side).to(self.device)

    def grow(self, rows: int) -> None:
        """Extend to at least this many rows; new rows are seeds."""
        before = len(self)
        super().grow(rows)
        if len(self) > before:
            new = slice(before + 1, len(self) + 1)
            self._table[new] = self.unwritten(np.arange(before, len(self)))
            self._lengths[new] = 1.0

    def restore(self, snapshot: Tensor) -> None:
        """Restore what `snapshot` returned; a row of zeros counts as unwritten."""
        super().restore(snapshot)
        blank = np.flatnonzero(self._lengths[1:].cpu().numpy() == 0)
        at = torch.from_numpy(blank + 1).to(self.device)
        self._table[at] = self.unwritten(blank)
        self._lengths[at] = 1.0
