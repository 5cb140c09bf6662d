"""The last N counterparts of every user or item: the input of the encoder.

A ring of `length` slots per owner, filled by `append` and read by `recent`. Within a block of events the exact history
of an event includes the owner's earlier events of the same block. They are passed as `pending` instead of being
appended first, so that reading changes no state.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from felrec.data.events import RowChange, Rows, Weights
from felrec.data.pending import Pending, grouped
from felrec.data.tables.growing import GrowingArray
from felrec.data.tables.table import TableState

_BLOCK = 1 << 16  # events sorted at a time, so that they stay in the CPU cache
_ROW_BITS, _USUAL, _HIGHEST = 26, 16, 31  # of marked rows; part of the format of a state
EMPTY = -1  # the row of padding, which a cache reads as the zero vector


def steps_of(weights: Weights) -> Rows:
    """How much events of these weights count, in half powers of two: 0 is context, 16 is a weight of 1 or none.

    >>> steps_of(np.array([0, 1, np.nan, 2, 3, 0.5, 1e9], dtype=np.float32)).tolist()
    [0, 16, 16, 18, 19, 14, 31]
    """
    bits = np.ascontiguousarray(weights, dtype=np.float32).view(np.int32)
    steps = np.clip((bits >> 22) - 254 + _USUAL, 1, _HIGHEST)  # the exponent, and the first bit after it
    found: Rows = np.where(np.isnan(weights), _USUAL, np.where(weights > 0, steps, 0)).astype(np.int32)
    return found


def marked(rows: Rows, weights: Weights | None) -> Rows:
    """Rows with the steps of their events above them; a row itself has the usual step."""
    return rows if weights is None else rows | (steps_of(weights) ^ _USUAL) << _ROW_BITS


def steps_in(entries: Rows) -> Rows:
    """The steps of marked rows."""
    return (entries >> _ROW_BITS) ^ _USUAL


def rows_of(entries: Rows) -> Rows:
    """Marked rows without their steps."""
    return np.where(entries < 0, entries, entries & ((1 << _ROW_BITS) - 1))


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
        self._ring = GrowingArray(np.int32, (length,), fill=EMPTY)
        self._count = GrowingArray(np.int64)

    @property
    def owners(self) -> int:
        """The number of rings: the highest row seen plus one."""
        return len(self._count)

    def clear(self) -> None:
        """Remove all events."""
        self._ring.clear()
        self._count.clear()

    @property
    def growing(self) -> dict[str, GrowingArray]:
        """The arrays themselves."""
        return {"ring": self._ring, "count": self._count}

    @property
    def columns(self) -> TableState:
        """Rings and counts of all owners, as views."""
        return {"ring": self._ring.values, "count": self._count.values}

    def counts(self, owners: NDArray[np.integer]) -> NDArray[np.int64]:
        """Number of events of each owner so far, not limited by `length`."""
        return self._count.read(owners)

    def append(self, owners: NDArray[np.integer], others: NDArray[np.integer]) -> None:
        """Append events in time order: `others[i]` becomes the newest counterpart of `owners[i]`."""
        if len(owners) == 0:
            return
        for column in (self._ring, self._count):
            column.grow(int(owners.max()) + 1)
        if len(owners) <= _BLOCK:
            self._append_block(owners, others)
            return
        for places in self._newest(owners):
            self._append_block(owners[places], others[places])

    def _newest(self, owners: NDArray[np.integer]) -> Iterator[NDArray[np.int64]]:
        """Indices, in blocks in time order, of the last N events of each owner; older events are only counted."""
        seen = np.zeros(self.owners, dtype=np.int32)  # number of each owner's events, from the end
        blocks = []
        for begin in reversed(range(0, len(owners), _BLOCK)):
            block = owners[begin : begin + _BLOCK]
            wanted = np.flatnonzero(seen.take(block) < self.length)
            np.add.at(seen, block[wanted], np.int32(1))
            np.add.at(self._count.values, block, 1)
            blocks.append(wanted + begin)
        self._count.values[:] -= seen  # these are appended later
        return reversed(blocks)

    def _append_block(self, owners: NDArray[np.integer], others: NDArray[np.integer]) -> None:
        order, first = grouped(owners)
        ordered = owners[order]
        nth = np.arange(len(order)) - first  # 0, 1, 2, … within each owner
        slot = (self._count.values[ordered] + nth) % self.length
        slot += ordered.astype(np.int64) * self.length  # in the flat ring, which is faster to write to
        counterparts = others[order]
        if nth.max(initial=0) >= self.length:
            # An event is overwritten if its owner has N later events in the same block.
            survives = np.ones(len(order), dtype=bool)
            survives[: -self.length] = ordered[: -self.length] != ordered[self.length :]
            slot, counterparts = slot[survives], counterparts[survives]
        self._ring.values.reshape(-1)[slot] = counterparts
        np.add.at(self._count.values, owners, 1)

    def recent(self, owners: NDArray[np.integer], pending: Pending | None = None) -> tuple[Rows, NDArray[np.bool_]]:
        """Rows (B, N), oldest first and padded on the left with -1, and the mask (B, N) of real entries."""
        entries = self.entries(owners, pending)
        rows = rows_of(entries)
        return rows, rows != EMPTY  # after `rewrite` a ring may hold fewer events than were counted

    def entries(self, owners: NDArray[np.integer], pending: Pending | None = None) -> Rows:
        """The same rows, still `marked`."""
        back = np.arange(self.length - 1, -1, -1)  # (N,) steps before now: N-1 … 0
        waiting = np.zeros((len(owners), 1), dtype=np.int64)
        if pending is not None:
            waiting = (pending.stops - pending.starts)[:, None]
        stored = self.counts(owners)[:, None]
        age = back - waiting  # (B, N) steps before the newest stored entry; negative: still pending
        mask = age < stored
        rows = np.full((len(owners), self.length), EMPTY, dtype=np.int32)
        from_ring = mask & (age >= 0) & (age < self.length)
        owner, _ = np.nonzero(from_ring)
        rows[from_ring] = self._ring.values[owners[owner], ((stored - 1 - age) % self.length)[from_ring]]
        if pending is not None and len(pending.values):
            from_pending = age < 0
            at = (pending.stops[:, None] - 1 - back)[from_pending]
            rows[from_pending] = pending.values[at]
        return rows

    def change(self, owners: Rows, pending: Pending) -> RowChange:
        """The rings (B, N) and counts (B,) of distinct owners after their pending events are appended."""
        rows = self.entries(owners, pending)
        return self._placed(owners, rows, self.counts(owners) + pending.stops - pending.starts)

    def rewrite(self, owners: Rows, newest: Pending, counts: NDArray[np.int64]) -> RowChange:
        """The rings and counts of distinct owners whose `newest` events are known, out of `counts`."""
        rows, _ = Histories(self.length).recent(owners, newest)
        return self._placed(owners, rows, counts)

    def _placed(self, owners: Rows, rows: Rows, counts: NDArray[np.int64]) -> RowChange:
        """Move rows (B, N), oldest first, into the slots that `append` uses."""
        slots = (counts[:, None] - self.length + np.arange(self.length)) % self.length  # event k is in slot k mod N
        rings = np.empty_like(rows)
        np.put_along_axis(rings, slots, rows, axis=1)
        return {"ring": (owners, rings), "count": (owners, counts)}

    def apply_change(self, change: RowChange) -> None:
        """Write what `change` returned."""
        self._ring.write(*change["ring"])
        self._count.write(*change["count"])

    def view(self) -> TableState:
        """The same arrays as `columns`."""
        return self.columns

    def state(self) -> TableState:
        """A copy of the rings and counts."""
        return {name: values.copy() for name, values in self.columns.items()}

    def load_state(self, state: TableState) -> None:
        """Replace all rings and counts by what `state` returned."""
        self._ring.load(state["ring"])
        self._count.load(state["count"])
