"""Shares with 95 % intervals, and the difference of two."""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

_Z = 1.959964  # of 95 %


class Interval(NamedTuple):
    """An estimate and its 95 % interval."""

    value: float
    low: float
    high: float


def share_of(hits: int, of: int) -> Interval | None:
    """A share with its interval by Wilson (1927), which also holds for few hits; None without trials.

    >>> [round(end, 4) for end in share_of(1, 10)]
    [0.1, 0.0179, 0.4042]
    """
    if not of:
        return None
    share, z2 = hits / of, _Z**2 / of
    centre = (share + z2 / 2) / (1 + z2)
    half = _Z / (1 + z2) * sqrt(share * (1 - share) / of + z2 / of / 4)
    return Interval(share, max(0.0, centre - half), min(1.0, centre + half))


def difference(first: Interval, second: Interval) -> Interval:
    """First minus second, with the interval that Newcombe (1998, method 10) makes of two intervals by Wilson.

    >>> [round(end, 4) for end in difference(share_of(56, 70), share_of(48, 80))]
    [0.2, 0.0524, 0.3339]
    """
    value = first.value - second.value
    low = value - sqrt((first.value - first.low) ** 2 + (second.high - second.value) ** 2)
    high = value + sqrt((first.high - first.value) ** 2 + (second.value - second.low) ** 2)
    return Interval(value, low, high)
