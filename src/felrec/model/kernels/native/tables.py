"""The structures of tables.h, for ctypes."""

from __future__ import annotations

from ctypes import Structure, c_char_p, c_double, c_float, c_int64, c_void_p
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

CHUNK = 256
"""Items with a common upper bound."""

PERIODS = 16
"""Periods for which a chunk has bounds."""

ITEM = np.dtype(
    [(name, "f4") for name in ("score", "trust", "reach", "log_events", "root_events")] + [("stamp", "i4")],
)
"""What is kept of each item."""

NEVER_SCORED: np.void = np.array([(-np.inf, 0, 0, 0, 0, -1)], dtype=ITEM)[0]
"""An item of which nothing is known yet."""

ITEMS_CHUNK = np.dtype([("moment", "i8"), ("drift", "f8"), ("bounds", "f4", 2 * PERIODS)])
"""What is kept of each chunk of items."""


class Histories(Structure):
    """The newest counterparts of each owner, as rings."""

    _fields_ = (("ring", c_void_p), ("count", c_void_p), ("owners", c_int64), ("length", c_int64))


class Counts(Structure):
    """The most frequent counterparts of each owner; all zero for a signal that the model does not have."""

    _fields_ = (
        ("other", c_void_p),
        ("count", c_void_p),
        ("nth", c_void_p),
        ("minute", c_void_p),
        ("place", c_void_p),
        ("used", c_void_p),
        ("end", c_void_p),
        ("owners", c_int64),
        ("size", c_int64),
        ("reach", c_int64),
        ("first_rate", c_int64),
    )


class PairNetwork(Structure):
    """An ensemble of networks with two hidden layers."""

    _fields_ = (
        ("members", c_int64),
        ("hidden", c_int64),
        ("first", c_void_p),
        ("first_bias", c_void_p),
        ("second", c_void_p),
        ("second_bias", c_void_p),
        ("last", c_void_p),
        ("last_bias", c_float),
    )


class Encoder(Structure):
    """The encoder of a history, and the vectors of the counterparts."""

    _fields_ = (
        ("width", c_int64),
        ("heads", c_int64),
        ("feed_forward", c_int64),
        ("layers", c_int64),
        ("weights", c_void_p),
        ("vectors", c_void_p),
        ("rows", c_int64),
        ("side", c_int64),
        ("softness", c_float),
    )


class Sequence(Structure):
    """The network that reads a sequence, and the vectors of items."""

    _fields_ = (
        ("width", c_int64),
        ("size", c_int64),
        ("heads", c_int64),
        ("inner", c_int64),
        ("weights", c_void_p),
        ("vectors", c_void_p),
        ("rows", c_int64),
    )


class Trend(Structure):
    """Decayed counts of each item; all zero for a model without this signal."""

    _fields_ = (
        ("mass", c_void_p),
        ("last", c_void_p),
        ("first", c_void_p),
        ("rows", c_int64),
        ("log", c_void_p),
        ("items", c_int64),
    )


class ItemNetwork(Structure):
    """An ensemble of networks with one hidden layer, and the counts that their features are made of."""

    _fields_ = (
        ("trend", Trend),
        ("horizons", c_void_p),
        ("hidden", c_int64),
        ("first", c_void_p),
        ("bias", c_void_p),
        ("last", c_void_p),
        ("slopes", c_void_p),
        ("falls", c_void_p),
        ("last_bias", c_float),
        ("rise_of_age", c_float),
    )


class Tables(Structure):
    """Everything that an answer depends on, except for the question."""

    _fields_ = (
        ("users", Histories),
        ("item_events", c_void_p),
        ("item_owners", c_int64),
        ("own", Counts),
        ("near", Counts),
        ("next", Counts),
        ("ahead", Counts),
        ("rates", c_void_p),
        ("network", PairNetwork),
        ("encoder", Encoder),
        ("sequence", Sequence),
        ("catalogue", c_int64),
        ("items", c_void_p),
        ("moment", c_int64),
        ("drift", c_double),
        ("item_network", ItemNetwork),
        ("scale", c_float),
        ("certain", c_float),
        ("per_log_event", c_float),
        ("lengths", c_void_p),
        ("chunks", c_void_p),
        ("tops", c_void_p),
        ("order", c_void_p),
    )


class Questions(Structure):
    """A batch of queries and what may be an answer to each. A list may be an address, or bytes that it keeps."""

    _fields_ = (
        ("count", c_int64),
        ("users", c_char_p),
        ("times", c_char_p),
        ("pending", c_char_p),
        ("pending_times", c_char_p),
        ("pending_starts", c_char_p),
        ("pending_stops", c_char_p),
        ("k", c_char_p),
        ("leave_out", c_char_p),
        ("leave_out_starts", c_char_p),
        ("leave_out_stops", c_char_p),
        ("hidden", c_char_p),
        ("hidden_count", c_int64),
        ("candidates", c_char_p),
        ("candidate_starts", c_char_p),
        ("candidate_stops", c_char_p),
    )


def copied(array: NDArray[Any], dtype: DTypeLike) -> bytes:
    """A copy of a short array for the kernels, which read it as `dtype`: faster than to ask where it begins."""
    assert array.dtype == dtype, f"the kernels read {dtype}, not {array.dtype}"
    return array.tobytes()


def address(array: NDArray[Any], dtype: DTypeLike) -> int:
    """Where an array begins. The caller keeps the array; the kernels read it as `dtype`, without steps."""
    assert array.dtype == np.dtype(dtype), f"the kernels read {dtype}, not {array.dtype}"
    assert array.flags.c_contiguous, "the kernels read rows without gaps"
    return array.ctypes.data
