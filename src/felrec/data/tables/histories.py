"""The last N counterparts of every user or item: what the encoder reads.

One object serves training, evaluation and the live service: a ring of `length` slots per owner,
filled by `append` and read by `recent`. Within a block of events the exact history of each event also
holds the owner's earlier events of the same block; they are passed as `pending` instead of being
appended first, so that reading never changes anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from felrec.data.events import RowChange, Rows

_BLOCK = 1 << 16  # events sorted at a time, so that they stay in the CPU's cache
EMPTY = np.int32(-1)  # the row of "nobody": read from a cache it is the zero vector


def grouped(owners: NDArray[np.integer]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The order that puts the events of each owner together, in time order, and for each place where its run begins.

    >>> order, first = grouped(np.array([7, 3, 7, 7, 3]))
    >>> order.tolist(), first.tolist()
    ([1, 4, 0, 2, 3], [0, 0, 2, 2, 2])
    """
    places = np.arange(len(owners))
    keys = owners.astype(np.int64) << 32 | places  # all different, so that the fastest sort is a stable one
    keys.sort()
    order = keys & 0xFFFFFFFF
    ordered = keys >> 32
    begins = np.ones(len(owners), dtype=bool)
    begins[1:] = ordered[1:] != ordered[:-1]
    return order, np.maximum.accumulate(np.where(begins, places, 0))


@dataclass(frozen=True)
class Pending:
    """Ragged lists: list i is `values[starts[i]:stops[i]]`. Lists may overlap, which keeps a block linear.

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
        """From a list of lists."""
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
        """The same lists without overlaps: what follows a list is another list, not the event it was made for."""
        lengths = self.stops - self.starts
        stops = np.cumsum(lengths)
        starts = stops - lengths
        at = np.arange(lengths.sum()) + np.repeat(self.starts - starts, lengths)
        return Pending(self.values[at], starts, stops)

    def where(self, kept: NDArray[np.bool_]) -> Pending:
        """The same lists with only those values that are `kept`.

        >>> short = Pending.of([[1, 2], [], [3]]).where(np.array([False, True, True]))
        >>> [short.values[a:b].tolist() for a, b in zip(short.starts, short.stops)]
        [[2], [], [3]]
        """
        before = np.append(0, np.cumsum(kept))  # how many are kept before each place
        return Pending(self.values[kept], before[self.starts], before[self.stops])

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, index: slice | NDArray[np.integer]) -> Pending:
        return Pending(self.values, self.starts[index], self.stops[index])


class Histories:
    """The most recent counterparts of each owner, at most `length` of them.

    >>> histories = Histories(3)
    >>> histories.append(np.array([0, 1, 0]), np.array([5, 6, 7]))
    >>> rows, mask = histories.recent(np.array([0, 1, 9]))
    >>> rows.tolist()
    [[-1, 5, 7], [-1, -1, 6], [-1, -1, -1]]
    """

    def __init__(self, length: int) -> None:
        self.length = length
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self.owners = 0  # how many have a ring: the highest row seen plus one
        self._ring = np.full((0, self.length), EMPTY, dtype=np.int32)
        self._count = np.zeros(0, dtype=np.int64)

    def counts(self, owners: NDArray[np.integer]) -> NDArray[np.int64]:
        """Number of events of each owner so far, without the limit of `length`."""
        known = owners < len(self._count)
        counts = np.zeros(len(owners), dtype=np.int64)
        counts[known] = self._count[owners[known]]
        return counts

    def grow(self, owners: int) -> None:
        """Make room for rows below `owners`, by doubling so that growth stays cheap."""
        if owners > len(self._ring):
            room = max(owners, 2 * len(self._ring))
            ring = np.full((room, self.length), EMPTY, dtype=np.int32)
            ring[: self.owners] = self._ring[: self.owners]
            count = np.zeros(room, dtype=np.int64)
            count[: self.owners] = self._count[: self.owners]
            self._ring, self._count = ring, count
        self.owners = max(self.owners, owners)

    def append(self, owners: NDArray[np.integer], others: NDArray[np.integer]) -> None:
        """Append events in time order: `others[i]` becomes the newest counterpart of `owners[i]`."""
        if len(owners) == 0:
            return
        self.grow(int(owners.max()) + 1)
        if len(owners) <= _BLOCK:
            self._append_block(owners, others)
            return
        for places in self._newest(owners):
            self._append_block(owners[places], others[places])

    def _newest(self, owners: NDArray[np.integer]) -> Iterator[NDArray[np.int64]]:
        """Blocks of places, in time order, that hold the last N events of each owner; older ones are only counted."""
        seen = np.zeros(self.owners, dtype=np.int32)  # of each owner's events, from the end
        blocks = []
        for begin in reversed(range(0, len(owners), _BLOCK)):
            block = owners[begin : begin + _BLOCK]
            wanted = np.flatnonzero(seen.take(block) < self.length)
            np.add.at(seen, block[wanted], np.int32(1))
            np.add.at(self._count, block, 1)
            blocks.append(wanted + begin)
        self._count[: self.owners] -= seen  # these are yet to be appended
        return reversed(blocks)

    def _append_block(self, owners: NDArray[np.integer], others: NDArray[np.integer]) -> None:
        order, first = grouped(owners)
        ordered = owners[order]
        nth = np.arange(len(order)) - first  # 0, 1, 2, … within each owner
        slot = (self._count[ordered] + nth) % self.length
        slot += ordered.astype(np.int64) * self.length  # in the flat ring, which is faster to write to
        counterparts = others[order]
        if nth.max(initial=0) >= self.length:
            # An event survives unless the same block overwrites it, N events of its owner later.
            survives = np.ones(len(order), dtype=bool)
            survives[: -self.length] = ordered[: -self.length] != ordered[self.length :]
            slot, counterparts = slot[survives], counterparts[survives]
        self._ring.reshape(-1)[slot] = counterparts
        np.add.at(self._count, owners, 1)

    def recent(self, owners: NDArray[np.integer], pending: Pending | None = None) -> tuple[Rows, NDArray[np.bool_]]:
        """Rows (B, N), oldest first and padded on the left with -1, and the mask (B, N) of real entries."""
        back = np.arange(self.length - 1, -1, -1)  # (N,) how many steps before now: N-1 … 0
        waiting = np.zeros((len(owners), 1), dtype=np.int64)
        if pending is not None:
            waiting = (pending.stops - pending.starts)[:, None]
        stored = self.counts(owners)[:, None]
        age = back - waiting  # (B, N) steps before the newest stored entry; negative: still pending
        mask = age < stored
        rows = np.full((len(owners), self.length), EMPTY, dtype=np.int32)
        from_ring = mask & (age >= 0) & (age < self.length)
        owner, _ = np.nonzero(from_ring)
        rows[from_ring] = self._ring[owners[owner], ((stored - 1 - age) % self.length)[from_ring]]
        if pending is not None and len(pending.values):
            from_pending = age < 0
            at = (pending.stops[:, None] - 1 - back)[from_pending]
            rows[from_pending] = pending.values[at]
        return rows, mask & (rows != EMPTY)  # `rewrite` may know fewer events than were counted

    def change(self, owners: Rows, pending: Pending) -> RowChange:
        """The rings (B, N) and counts (B,) of distinct owners once their pending events are appended."""
        rows, _ = self.recent(owners, pending)
        return self._placed(owners, rows, self.counts(owners) + pending.stops - pending.starts)

    def rewrite(self, owners: Rows, newest: Pending, counts: NDArray[np.int64]) -> RowChange:
        """The rings and counts of distinct owners of whom only these newest events, of so many, are known."""
        rows, _ = Histories(self.length).recent(owners, newest)
        return self._placed(owners, rows, counts)

    def _placed(self, owners: Rows, rows: Rows, counts: NDArray[np.int64]) -> RowChange:
        """Rows (B, N), oldest first, each in the slot where `append` would have put it."""
        slots = (counts[:, None] - self.length + np.arange(self.length)) % self.length  # event k lies in slot k mod N
        rings = np.empty_like(rows)
        np.put_along_axis(rings, slots, rows, axis=1)
        return {"ring": (owners, rings), "count": (owners, counts)}

    def apply_change(self, change: RowChange) -> None:
        """Write what `change` returned."""
        (owners, rings), (_, counts) = change["ring"], change["count"]
        self.grow(int(owners.max(initial=-1)) + 1)
        self._ring[owners], self._count[owners] = rings, counts

    def state(self) -> dict[str, NDArray[np.generic]]:
        """A copy of the rings and counts."""
        return {"ring": self._ring[: self.owners].copy(), "count": self._count[: self.owners].copy()}

    def load_state(self, state: dict[str, NDArray[np.generic]]) -> None:
        """Put back what `state` returned."""
        self._ring = np.array(state["ring"], dtype=np.int32, order="C").reshape(-1, self.length)
        self._count = np.array(state["count"], dtype=np.int64)
        self.owners = len(self._count)
