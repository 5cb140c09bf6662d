"""Ragged lists of rows, such as each user's events of a block that are not applied yet, and grouping of events."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from felrec.data.events import Rows


def grouped(owners: NDArray[np.integer]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The order that groups events by owner, in time order, and for each position the start of its group.

    >>> order, first = grouped(np.array([7, 3, 7, 7, 3]))
    >>> order.tolist(), first.tolist()
    ([1, 4, 0, 2, 3], [0, 0, 2, 2, 2])
    """
    places = np.arange(len(owners))
    keys = owners.astype(np.int64) << 32 | places  # all distinct, so that any sort is stable
    keys.sort()
    order = keys & 0xFFFFFFFF
    ordered = keys >> 32
    begins = np.ones(len(owners), dtype=bool)
    begins[1:] = ordered[1:] != ordered[:-1]
    return order, np.maximum.accumulate(np.where(begins, places, 0))


def spread(starts: NDArray[np.int64], stops: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All positions of several ranges, and the range that each belongs to.

    >>> [column.tolist() for column in spread(np.array([5, 0, 2]), np.array([7, 0, 3]))]
    [[5, 6, 2], [0, 0, 2]]
    """
    lengths = stops - starts
    run = np.repeat(np.arange(len(lengths)), lengths)
    return np.arange(lengths.sum()) + np.repeat(starts - (np.cumsum(lengths) - lengths), lengths), run


@dataclass(frozen=True)
class Pending:
    """Ragged lists: list i is `values[starts[i]:stops[i]]`. Lists may overlap, so that memory is linear in the block.

    >>> pending = Pending.within_block(np.array([7, 8, 7, 7]), np.array([1, 2, 3, 4]))
    >>> [pending.values[a:b].tolist() for a, b in zip(pending.starts, pending.stops)]
    [[], [], [1], [1, 3]]
    """

    values: Rows  # (M,)
    starts: NDArray[np.int64]  # (B,)
    stops: NDArray[np.int64]  # (B,)

    @classmethod
    def none(cls, count: int) -> Pending:
        """`count` empty lists."""
        zeros = np.zeros(count, dtype=np.int64)
        return cls(np.empty(0, dtype=np.int32), zeros, zeros)

    @classmethod
    def of(cls, lists: list[list[int]]) -> Pending:
        """Build from a list of lists."""
        stops = np.cumsum([len(one) for one in lists], dtype=np.int64)
        starts = np.concatenate([np.zeros(1, dtype=np.int64), stops])[:-1]
        return cls(np.asarray([row for one in lists for row in one], dtype=np.int32), starts, stops)

    @classmethod
    def within_block(cls, owners: NDArray[np.integer], others: NDArray[np.integer]) -> Pending:
        """For each event of a block, the counterparts of its owner's earlier events of that block."""
        order, first = grouped(owners)
        starts = np.empty(len(owners), dtype=np.int64)
        stops = np.empty(len(owners), dtype=np.int64)
        starts[order] = first
        stops[order] = np.arange(len(owners))
        return cls(np.asarray(others, dtype=np.int32)[order], starts, stops)

    @classmethod
    def of_owners(cls, owners: NDArray[np.integer], others: NDArray[np.integer]) -> tuple[Rows, Pending]:
        """The distinct owners of a block, ascending, and for each the counterparts of all its events there.

        >>> owners, pending = Pending.of_owners(np.array([7, 3, 7]), np.array([1, 2, 3]))
        >>> owners.tolist(), [pending.values[a:b].tolist() for a, b in zip(pending.starts, pending.stops)]
        ([3, 7], [[2], [1, 3]])
        """
        order, first = grouped(owners)
        starts = np.unique(first)
        stops = np.append(starts[1:], len(owners))
        return owners[order[starts]].astype(np.int32), cls(np.asarray(others, dtype=np.int32)[order], starts, stops)

    def compacted(self) -> Pending:
        """The same lists without overlaps: the value after a list is not the event that the list was made for."""
        stops = np.cumsum(self.stops - self.starts)
        at, _ = spread(self.starts, self.stops)
        return Pending(self.values[at], stops - self.stops + self.starts, stops)

    def where(self, kept: NDArray[np.bool_]) -> Pending:
        """The same lists with only those values that are `kept`.

        >>> short = Pending.of([[1, 2], [], [3]]).where(np.array([False, True, True]))
        >>> [short.values[a:b].tolist() for a, b in zip(short.starts, short.stops)]
        [[2], [], [3]]
        """
        before = np.append(0, np.cumsum(kept))  # number kept before each position
        return Pending(self.values[kept], before[self.starts], before[self.stops])

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, index: slice | NDArray[np.integer]) -> Pending:
        return Pending(self.values, self.starts[index], self.stops[index])
