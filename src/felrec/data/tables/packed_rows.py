"""Rows of slots of which most are free: only the slots up to the last used one take memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from felrec.data.tables.growing import GrowingArray, room_for
from felrec.data.tables.table import RowsByTable, TableState
from felrec.data.tables.trimmed_values import TrimmedValues, count_used, in_use, ranges

_LEAST = 4  # slots that a row has room for as soon as it uses one
_AHEAD = 4  # times the slots asked for that more room provides: it takes no memory before it is used
_AT_ONCE = 4_096  # rows that are copied at a time, so that copies of many rows need little further memory


class PackedRows:
    """Rows (owners, size) of several columns; a row that was never written, or a free slot, reads as `fill`.

    The slots of all rows are in one array per column, those of a row side by side. A row has room for 4, 8, 16, … or
    `size` slots, the least that holds its used ones. One that needs more, or less, moves to the end of all slots. The
    gaps that it leaves, together less than its room, are closed when all slots move to a larger array.

    The compiled kernels read and write these arrays too (`Counts` in tables.h, `write_counts` in events.c).

    >>> rows = PackedRows(8, {"other": (np.int32, -1), "count": (np.float32, 0)})
    >>> row = {"other": np.array([[5, -1, 7, -1, -1, -1, -1, -1]]), "count": np.array([[1, 0, 2, 0, 0, 0, 0, 0]])}
    >>> rows.write(np.array([2]), row)
    >>> rows.read(np.array([2, 9]), "other").tolist()
    [[5, -1, 7, -1, -1, -1, -1, -1], [-1, -1, -1, -1, -1, -1, -1, -1]]
    >>> len(rows), rows.used.values.tolist(), int(rows.end[0])
    (3, [0, 0, 3], 4)
    """

    def __init__(self, size: int, columns: Mapping[str, tuple[DTypeLike, int]]) -> None:
        self.size = size
        self.columns = {name: Slots(dtype, fill) for name, (dtype, fill) in columns.items()}
        self.place = GrowingArray(np.int64)  # where the slots of each owner begin
        self.used = GrowingArray(np.int32)  # slots up to the last one that is not free
        self.end = np.zeros(1, dtype=np.int64)  # of all slots; an array, because the kernels move it too
        self._room = 0  # for slots
        self._rooms = np.array([room_of(used, size) for used in range(size + 1)])  # by the slots that a row uses

    def __len__(self) -> int:
        return len(self.place)

    def clear(self) -> None:
        """Remove all rows."""
        self.place.clear()
        self.used.clear()
        self.end[0] = self._room = 0
        for column in self.columns.values():
            column.room = column.blank(0)

    def read(self, owners: NDArray[np.integer], name: str) -> NDArray[Any]:
        """A copy of one column (B, size) of these owners."""
        used, column = self.used.read(owners), self.columns[name]
        values = column.blank((len(owners), self.size))
        values[in_use(used, self.size)] = column.room[ranges(self.place.read(owners), used)]
        return values

    def write(self, owners: NDArray[np.integer], values: TableState) -> None:
        """Overwrite the rows (B, size) of distinct owners."""
        self.grow(int(owners.max(initial=-1)) + 1)
        used = self._count_used(values)
        room = self._rooms[used]
        moved = np.flatnonzero(room != self._rooms[self.used.read(owners)])
        ends = np.cumsum(room[moved])
        self.reserve(int(ends[-1]) if len(ends) else 0)
        place = self.place.read(owners)
        place[moved] = self.end[0] + ends - room[moved]
        self.end[0] += ends[-1] if len(ends) else 0
        self.place.write(owners, place)
        self.used.write(owners, used)
        mask, slots = in_use(used, self.size), ranges(place, used)
        for name, column in self.columns.items():
            column.room[slots] = values[name][mask]

    def grow(self, owners: int) -> None:
        """Extend to at least this many rows."""
        self.place.grow(owners)
        self.used.grow(owners)

    def reserve(self, slots: int) -> None:
        """Have room for so many slots more; this may move all of them."""
        if self.end.item() + slots > self._room:
            self._move(_AHEAD * slots)

    def state(self) -> TableState:
        """A copy of all rows."""
        state = {name: np.empty((len(self), self.size), column.dtype) for name, column in self.columns.items()}
        for piece in _pieces(len(self)):
            for name, values in state.items():
                values[piece] = self.read(np.arange(piece.start, piece.stop), name)
        return state

    def load(self, state: RowsByTable) -> None:
        """Replace all rows."""
        self.clear()
        for piece in _pieces(len(next(iter(state.values())))):
            owners = np.arange(piece.start, piece.stop)
            self.write(owners, {name: state[name][owners] for name in self.columns})

    def _move(self, more: int) -> None:
        """Copy all slots to larger arrays, without gaps."""
        rooms, before = self._rooms[self.used.values], self.place.values
        ends = np.cumsum(rooms)
        place, total = ends - rooms, int(ends[-1]) if len(ends) else 0
        slots = room_for(total + more, total)
        larger = [np.empty(slots, column.dtype) for column in self.columns.values()]
        for column, room in zip(self.columns.values(), larger, strict=True):
            for piece in _pieces(len(self)):
                used = self.used.values[piece]
                room[ranges(place[piece], used)] = column.room[ranges(before[piece], used)]
            column.room = room
        self.place.values[:], self.end[0], self._room = place, total, slots

    def _count_used(self, values: TableState) -> NDArray[np.int32]:
        """The slots (B,) of each row up to the last one that is not free."""
        differs = [values[name] != column.fill for name, column in self.columns.items()]
        return count_used(np.logical_or.reduce(differs))


class Slots:
    """One column of all rows, and room for more slots; another array after it has moved."""

    def __init__(self, dtype: DTypeLike, fill: int) -> None:
        self.dtype, self.fill = np.dtype(dtype), fill
        self.room = self.blank(0)

    def blank(self, shape: int | tuple[int, int]) -> NDArray[Any]:
        """Free slots."""
        return np.full(shape, self.fill, dtype=self.dtype)


class PackedColumn:
    """One column of packed rows, to be read like an array (owners, size)."""

    def __init__(self, rows: PackedRows, name: str) -> None:
        self._rows, self._name = rows, name

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, owners: NDArray[np.integer]) -> NDArray[Any]:
        return self._rows.read(owners, self._name)

    def trimmed(self, owners: NDArray[np.integer]) -> TrimmedValues:
        """The same without free slots at the end."""
        rows, column = self._rows, self._rows.columns[self._name]
        used = rows.used.read(owners)
        cells, last = column.room[ranges(rows.place.read(owners), used)], column.blank(len(owners))
        whole = used == rows.size  # they have no free slot
        last[whole] = cells[np.cumsum(used, dtype=np.int64)[whole] - 1]
        return TrimmedValues(last, used, cells)


def room_of(used: int, size: int) -> int:
    """The slots of a row with so many used ones."""
    return min(size, max(_LEAST, 1 << (used - 1).bit_length())) if used else 0


def _pieces(rows: int) -> Iterator[slice]:
    for start in range(0, rows, _AT_ONCE):
        yield slice(start, min(start + _AT_ONCE, rows))
