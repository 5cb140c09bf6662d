"""Addresses of tables that grow."""

from __future__ import annotations

import ctypes
from weakref import ref

import numpy as np

from felrec.data.tables.growing import GrowingArray
from felrec.model.kernels.native.moving import MovingTables


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
