"""Addresses of tables that grow."""

from __future__ import annotations

import ctypes
from weakref import ref

import numpy as np

from felrec.data.tables.growing import GrowingArray
from felrec.data.tables.packed_rows import PackedRows
from felrec.model.kernels.native.moving import MovingTables
from felrec.model.kernels.native.tables import Counts


class Place(ctypes.Structure):
    _fields_ = [("rows", ctypes.c_void_p)]


def test_a_table_that_has_moved_is_followed_and_its_old_memory_is_freed_at_once() -> None:
    table, place, moving = GrowingArray(np.int64), Place(), MovingTables()
    table.grow(10)
    moving.follow(place, "rows", "i8", table, "room")
    moving.look()
    assert place.rows == table.room.ctypes.data
    before = ref(table.room)
    table.grow(1_000)
    assert before() is None
    moving.look()
    assert place.rows == table.room.ctypes.data


def test_packed_rows_are_followed() -> None:
    rows, counts, moving = PackedRows(8, {"other": (np.int32, -1), "count": (np.float32, 0)}), Counts(), MovingTables()
    moving.follow_packed(counts, rows)
    for owners in (3, 300):
        before = ref(rows.columns["count"].room)
        filled = np.full((owners, 8), 7)
        rows.write(np.arange(owners), {"other": filled, "count": filled})
        assert before() is None
        moving.look()
        assert (counts.owners, counts.place, counts.used) == (
            owners,
            rows.place.room.ctypes.data,
            rows.used.room.ctypes.data,
        )
        assert counts.other == rows.columns["other"].room.ctypes.data
        assert counts.count == rows.columns["count"].room.ctypes.data
        assert counts.end == rows.end.ctypes.data
