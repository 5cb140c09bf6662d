"""Addresses of arrays that move when their table grows, kept up to date in structures that the kernels read."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sized
from typing import Any
from weakref import ref

from numpy.typing import DTypeLike

from felrec.data.tables.growing import GrowingArray
from felrec.data.tables.packed_rows import PackedRows
from felrec.model.kernels.native.tables import address


class MovingTables:
    """Fields of structures that follow tables: to see that an array has not moved is faster than to ask where it is."""

    def __init__(self) -> None:
        self._arrays: list[_MovingArray | _MovingSlots] = []
        self._lengths: list[tuple[ctypes.Structure, str, Sized]] = []

    def follow(self, at: ctypes.Structure, field: str, dtype: DTypeLike, table: object, attribute: str) -> None:
        """Let a field be the address of an array that is an attribute of a table."""
        self._arrays.append(_MovingArray(at, field, dtype, table, attribute))

    def follow_columns(
        self, at: ctypes.Structure, columns: Mapping[str, GrowingArray], types: Mapping[str, DTypeLike], length: str
    ) -> None:
        """Let fields be the addresses of columns of the same name, and one field their length."""
        for name, column in columns.items():
            self.follow(at, name, types[name], column, "room")
        self._lengths.append((at, length, next(iter(columns.values()))))

    def follow_packed(self, at: ctypes.Structure, rows: PackedRows) -> None:
        """Let the fields of `Counts` follow packed rows."""
        self.follow_columns(at, {"place": rows.place, "used": rows.used}, {"place": "i8", "used": "i4"}, "owners")
        self._arrays.append(_MovingSlots(at, rows))

    def look(self) -> None:
        """Bring all fields up to date."""
        for array in self._arrays:
            array.look()
        for at, field, rows in self._lengths:
            setattr(at, field, len(rows))


class _MovingArray:
    __slots__ = ("_at", "_attribute", "_dtype", "_field", "_seen", "_table")

    def __init__(self, at: ctypes.Structure, field: str, dtype: DTypeLike, table: object, attribute: str) -> None:
        self._at, self._field, self._dtype, self._table, self._attribute = at, field, dtype, table, attribute
        self._seen: Callable[[], Any] = (
            _nothing  # weak: an array that has moved is large, and must not stay until a look
        )

    def look(self) -> None:
        array = getattr(self._table, self._attribute)
        if array is not self._seen():
            setattr(self._at, self._field, address(array, self._dtype))
            self._seen = ref(array)


class _MovingSlots:
    """The columns of packed rows, which all move at once."""

    __slots__ = ("_at", "_columns", "_first", "_seen")

    def __init__(self, at: ctypes.Structure, rows: PackedRows) -> None:
        self._at, self._columns, self._first = at, rows.columns, next(iter(rows.columns.values()))
        self._seen: Callable[[], Any] = _nothing
        at.end = address(rows.end, "i8")  # never moves

    def look(self) -> None:
        room = self._first.room
        if room is not self._seen():
            for name, column in self._columns.items():
                setattr(self._at, name, address(column.room, column.dtype))
            self._seen = ref(room)


def _nothing() -> None:
    """No array."""
