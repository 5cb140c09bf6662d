"""Batches of windows of one user's consecutive events; each event is a target once per epoch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from felrec.data.events import Events, Rows
from felrec.data.pending import grouped
from felrec.data.tables.histories import EMPTY

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class WindowBatch:
    """Windows, oldest event first, padded on the right with -1; the length is the number of targets."""

    inputs: Rows  # (B, N) the item before each target, -1 for a user's first event
    targets: Rows  # (B, N)
    lengths: Integers  # (B,)

    def __len__(self) -> int:
        return int(self.lengths.sum())


class Windows:
    """Batches of shuffled windows of at most `length` events, about `batch_size` targets in each.

    A longer history is cut at positions that differ by epoch, so that no event always has the same short context. A
    random `share` of the windows is trained on.

    >>> events = Events.of([7, 8, 7, 7], [1, 2, 3, 4], range(4))
    >>> batch = Windows(events, length=3, batch_size=9)[0]
    >>> sorted(zip(batch.inputs.tolist(), batch.targets.tolist()))
    [([-1, -1, -1], [2, -1, -1]), ([-1, 1, 3], [1, 3, 4])]
    """

    def __init__(
        self, events: Events, length: int, batch_size: int, share: float = 1.0, seed: tuple[int, ...] = ()
    ) -> None:
        generator = np.random.default_rng(seed)
        order, first = grouped(events.users)
        self._targets = events.items[order]
        self._inputs = np.where(np.arange(len(order)) == first, EMPTY, np.roll(self._targets, 1))
        starts = _cut(first, length, generator)
        lengths = np.diff(np.append(starts, len(order)))
        chosen = generator.permutation(len(starts))[: max(1, round(share * len(starts)))]
        self._starts, self._lengths = starts[chosen], lengths[chosen]
        self._bounds = _even_bounds(self._lengths, batch_size)

    def __len__(self) -> int:
        return len(self._bounds) - 1

    def __getitem__(self, step: int) -> WindowBatch:
        if not 0 <= step < len(self):
            raise IndexError(step)
        window = slice(self._bounds[step], self._bounds[step + 1])
        starts, lengths = self._starts[window], self._lengths[window]
        places = np.arange(lengths.max())
        inside = places < lengths[:, None]
        at = np.where(inside, starts[:, None] + places, 0)
        return WindowBatch(
            np.where(inside, self._inputs[at], EMPTY), np.where(inside, self._targets[at], EMPTY), lengths
        )


def by_length(lengths: Integers, positions: int) -> Iterator[Integers]:
    """Group the indices of sequences of similar length, with at most `positions` positions per group after padding.

    >>> [group.tolist() for group in by_length(np.array([9, 1, 50, 8, 55]), 100)]
    [[1], [3, 0], [2], [4]]
    """
    order = np.argsort(lengths, kind="stable")
    ascending = lengths[order]
    start = 0
    while start < len(order):
        alike = int(np.searchsorted(ascending, 1.5 * ascending[start] + 2, side="right"))
        padded = ascending[start:alike] * np.arange(1, alike - start + 1)  # positions of the first 1, 2, 3, … sequences
        stop = start + max(1, int(np.searchsorted(padded, positions, side="right")))
        yield order[start:stop]
        start = stop


def _cut(first: Integers, length: int, generator: np.random.Generator) -> Integers:
    """Starts of windows in events grouped by user, from the start of each event's group."""
    begins, user, events = np.unique(first, return_inverse=True, return_counts=True)
    shift = np.where(events > length, generator.integers(0, length, len(begins)), 0)  # short histories are not cut
    nth = np.arange(len(first)) - first
    starts: Integers = np.flatnonzero((nth == 0) | ((nth + shift[user]) % length == 0))
    return starts


def _even_bounds(lengths: Integers, batch_size: int) -> Integers:
    """Boundaries of batches of whole windows with about equal numbers of events."""
    ends = np.cumsum(lengths)
    batches = max(1, round(ends[-1] / batch_size))
    inner = np.searchsorted(ends, ends[-1] * np.arange(1, batches) / batches)
    return np.unique(np.concatenate([[0], inner, [len(lengths)]]))
