"""Counts of the most frequent counterparts of each owner, in rows of at most a fixed size."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from felrec.data.events import RowChange, Rows
from felrec.data.tables.packed_rows import PackedColumn, PackedRows
from felrec.data.tables.table import RowsByTable, TableState

_NONE = -1  # the counterpart in a free slot


class TopKCounts:
    """Counts of at most `size` counterparts of each owner; a new counterpart replaces the one with the lowest count.

    A count is multiplied by `fade` with every meeting of its owner, so that old counterparts are replaced. `marks`
    are further integer columns that hold values of the latest meeting.

    >>> counts = TopKCounts(2, fade=0.5)
    >>> counts.add(np.array([7, 7, 7]), np.array([1, 2, 1]))
    >>> counts.add(np.array([7, 7]), np.array([3, 1]))
    >>> rows = counts.of(np.array([7, 9]))
    >>> rows["other"].tolist(), rows["count"].tolist()
    ([[1, 3], [-1, -1]], [[1.5, 1.0], [0.0, 0.0]])
    """

    def __init__(self, size: int, fade: float = 1.0, marks: tuple[str, ...] = ()) -> None:
        self.size, self.fade, self.marks = size, fade, marks
        self.rows = PackedRows(
            size, {"other": (np.int32, _NONE), "count": (np.float32, 0), **dict.fromkeys(marks, (np.int32, 0))}
        )

    @property
    def owners(self) -> int:
        """The highest row of an owner plus one."""
        return len(self.rows)

    def clear(self) -> None:
        """Remove all counts."""
        self.rows.clear()

    def of(self, owners: NDArray[np.integer]) -> TableState:
        """Every column (B, size) of these owners; the counterpart of a free slot is -1. A copy."""
        return {name: self.rows.read(owners, name) for name in self.rows.columns}

    def add(self, owners: NDArray[np.integer], others: NDArray[np.integer], **marks: NDArray[np.integer]) -> None:
        """Count meetings in time order."""
        self.apply_change(self.change(owners, others, None, **marks))

    def change(
        self,
        owners: NDArray[np.integer],
        others: NDArray[np.integer],
        also: Rows | None = None,
        **marks: NDArray[np.integer],
    ) -> RowChange:
        """The rows of these owners after counting the meetings, and of the owners in `also`, with or without meetings.

        A store of rows needs a row for every owner.
        """
        every = owners if also is None else np.concatenate([owners, also])
        touched, place = np.unique(every, return_inverse=True)
        of_owner = place[: len(owners)]
        meetings = np.bincount(of_owner, minlength=len(touched))
        rows = self.of(touched)
        rows["count"] *= (self.fade**meetings).astype(np.float32)[:, None]
        pairs, from_the_end, times = np.unique(
            (of_owner.astype(np.int64) << 32 | others)[::-1], return_index=True, return_counts=True
        )
        latest = len(owners) - 1 - from_the_end
        row, other = pairs >> 32, (pairs & 0xFFFFFFFF).astype(np.int32)
        found = rows["other"][row] == other[:, None]
        known = found.any(axis=1)
        slot = found.argmax(axis=1)
        rows["count"][row[known], slot[known]] += times[known]
        slot[~known] = _weakest(rows, row[~known], times[~known])
        kept = slot >= 0
        new = kept & ~known
        rows["other"][row[new], slot[new]], rows["count"][row[new], slot[new]] = other[new], times[new]
        stays = kept & (rows["other"][row, slot] == other)  # not replaced by a later counterpart
        for mark in self.marks:
            rows[mark][row[stays], slot[stays]] = marks[mark][latest[stays]]
        touched = touched.astype(np.int32)
        return {name: (touched, column) for name, column in rows.items()}

    def blank(self, owners: Rows) -> RowChange:
        """Empty rows."""
        shape = len(owners), self.size
        return {name: (owners, column.blank(shape)) for name, column in self.rows.columns.items()}

    def without(self, owners: Rows, met: NDArray[np.integer], others: NDArray[np.integer]) -> RowChange:
        """The rows of distinct ascending `owners` without the meetings of `met` (some of them) with `others`.

        How far a meeting has faded is unknown, so a full count of one is subtracted for each.

        >>> counts = TopKCounts(3)
        >>> counts.add(np.array([4, 4, 4]), np.array([7, 8, 8]))
        >>> change = counts.without(np.array([4], dtype=np.int32), np.array([4, 4]), np.array([7, 8]))
        >>> change["other"][1][0].tolist(), change["count"][1][0].tolist()
        ([8, -1, -1], [1.0, 0.0, 0.0])
        """
        rows = self.of(owners)
        pairs, times = np.unique(np.searchsorted(owners, met).astype(np.int64) << 32 | others, return_counts=True)
        slots = np.arange(len(owners))[:, None] << 32 | rows["other"].astype(np.int64) & 0xFFFFFFFF
        at = np.searchsorted(pairs, slots)
        rows["count"] -= np.where(np.append(pairs, _NONE)[at] == slots, np.append(times, 0)[at], 0)
        gone = rows["count"] <= 0
        for name, column in self.rows.columns.items():
            rows[name][gone] = column.fill
        return {name: (owners, column) for name, column in rows.items()}

    def apply_change(self, change: RowChange) -> None:
        """Write what `change` returned."""
        self.rows.write(change["other"][0], {name: values for name, (_, values) in change.items()})

    def view(self) -> RowsByTable:
        """Every column (owners, size), to be read in parts: a whole one would be a large copy."""
        return {name: PackedColumn(self.rows, name) for name in self.rows.columns}

    def state(self) -> TableState:
        """A copy of all rows."""
        return self.rows.state()

    def load_state(self, state: RowsByTable) -> None:
        """Replace all rows by what `state` returned."""
        self.rows.load(state)


def _weakest(rows: TableState, row: NDArray[np.int64], times: NDArray[np.int64]) -> NDArray[np.int64]:
    """Slots (M,) for new counterparts, lowest counts first for the most frequent; -1 where the slots run out."""
    order = np.lexsort((-times, row))
    ordered = row[order]
    begins = np.ones(len(row), dtype=bool)
    begins[1:] = ordered[1:] != ordered[:-1]
    places = np.arange(len(row))
    nth = places - np.maximum.accumulate(np.where(begins, places, 0))
    crowded = ordered[begins]
    strength = np.where(rows["other"][crowded] == _NONE, -1, rows["count"][crowded])
    slots = np.argsort(strength, axis=1, kind="stable")
    size = slots.shape[1]
    found = slots[np.cumsum(begins) - 1, np.minimum(nth, size - 1)]
    weakest = np.empty(len(row), dtype=np.int64)
    weakest[order] = np.where(nth < size, found, -1)
    return weakest
