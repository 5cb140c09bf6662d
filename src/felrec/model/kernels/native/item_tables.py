"""The structures of items.h, for ctypes."""

from __future__ import annotations

from ctypes import Structure, c_float, c_int64, c_void_p

from felrec.model.kernels.native.event_tables import Trend


class ItemNetwork(Structure):
    """An ensemble of networks with one hidden layer, and the counts that their features are made of."""

    _fields_ = (
        ("trend", Trend),
        ("horizons", c_void_p),
        ("features", c_int64),
        ("hidden", c_int64),
        ("first", c_void_p),
        ("bias", c_void_p),
        ("last", c_void_p),
        ("slopes", c_void_p),
        ("last_bias", c_float),
    )


class KeptItems(Structure):
    """What is kept of each candidate, by column."""

    _fields_ = (
        ("item_events", c_void_p),
        ("item_owners", c_int64),
        ("count", c_int64),
        ("known", c_int64),
        ("column_of", c_void_p),
        ("rows", c_void_p),
        ("events", c_void_p),
        ("log_events", c_void_p),
        ("scores", c_void_p),
        ("lengths", c_void_p),
        ("lengths_count", c_int64),
        ("scale", c_float),
        ("certain", c_float),
        ("per_log_event", c_float),
        ("items", c_void_p),
        ("upper", c_void_p),
        ("tops", c_void_p),
    )
