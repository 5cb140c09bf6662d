"""Compare two models with a paired bootstrap over users."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Interval(NamedTuple):
    """The mean difference and its 95 % interval."""

    difference: float
    low: float
    high: float

    @property
    def verdict(self) -> str:
        """`better`, `worse`, or `not clear` if the interval contains zero."""
        if self.low > 0:
            return "better"
        return "worse" if self.high < 0 else "not clear"


def paired_interval(
    ours: NDArray[np.floating],
    theirs: NDArray[np.floating],
    users: NDArray[np.integer],
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> Interval:
    """The 95 % interval of mean(ours - theirs) over events, resampling users with replacement.

    A user is drawn with all of their events: these are correlated, so drawing single events would give too narrow an
    interval.

    >>> paired_interval(np.ones(50), np.zeros(50), np.arange(50)).verdict
    'better'
    """
    difference = ours - theirs
    _, owners = np.unique(users, return_inverse=True)
    sums, events = np.bincount(owners, difference), np.bincount(owners)
    generator, means = np.random.default_rng(seed), np.empty(resamples)
    for n in range(resamples):
        drawn = generator.integers(len(events), size=len(events))
        means[n] = sums[drawn].sum() / events[drawn].sum()
    low, high = np.quantile(means, [0.025, 0.975])
    return Interval(float(difference.mean()), float(low), float(high))
