"""A stable hash of numbers: the same on every machine and in every version."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX = (30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)


def splitmix64(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The n-th output of the generator SplitMix64 with seed 0, which spreads every bit of n over the whole word.

    >>> [hex(word) for word in splitmix64(np.array([0, 1], dtype=np.uint64))]
    ['0xe220a8397b1dcdaf', '0x6e789e6aa1b965f4']
    """
    words = (numbers + np.uint64(1)) * _STEP
    for shift, factor in _MIX:
        words = (words ^ (words >> np.uint64(shift))) * np.uint64(factor)
    return words ^ (words >> np.uint64(31))
