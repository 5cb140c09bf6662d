"""The structure of items.h, for ctypes."""

from __future__ import annotations

from ctypes import Structure, c_int64, c_void_p

from felrec.model.kernels.native.tables import ItemNetwork


class KeptItems(Structure):
    """What is kept of each candidate, by column."""

    _fields_ = (
        ("network", ItemNetwork),
        ("item_events", c_void_p),
        ("item_owners", c_int64),
        ("known", c_int64),
        ("column_of", c_void_p),
        ("events", c_void_p),
        ("log_events", c_void_p),
        ("scores", c_void_p),
    )
