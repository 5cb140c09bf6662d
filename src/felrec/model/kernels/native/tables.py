"""The structures of tables.h, for ctypes."""

from __future__ import annotations

from ctypes import Structure, c_float, c_int64, c_void_p
from typing import Any

import numpy as np
from numpy.typing import NDArray

CHUNK = 256
"""Items with a common upper bound."""

ITEM = np.dtype([("score", "f4"), ("trust", "f4"), ("log_events", "f4"), ("root_events", "f4")])
"""What is kept of each item."""


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


class Tables(Structure):
    """Everything that an answer depends on, except for the question."""

    _fields_ = (
        ("users", Histories),
        ("item_events", c_void_p),
        ("item_owners", c_int64),
        ("own", Counts),
        ("near", Counts),
        ("next", Counts),
        ("rates", c_void_p),
        ("network", PairNetwork),
        ("encoder", Encoder),
        ("catalogue", c_int64),
        ("items", c_void_p),
        ("upper", c_void_p),
        ("tops", c_void_p),
        ("order", c_void_p),
    )


class Questions(Structure):
    """A batch of queries and what may be an answer to each."""

    _fields_ = (
        ("count", c_int64),
        ("users", c_void_p),
        ("times", c_void_p),
        ("pending", c_void_p),
        ("pending_times", c_void_p),
        ("pending_starts", c_void_p),
        ("pending_stops", c_void_p),
        ("k", c_void_p),
        ("leave_out", c_void_p),
        ("leave_out_starts", c_void_p),
        ("leave_out_stops", c_void_p),
        ("hidden", c_void_p),
        ("hidden_count", c_int64),
        ("candidates", c_void_p),
        ("candidate_starts", c_void_p),
        ("candidate_stops", c_void_p),
    )


def address(array: NDArray[Any], dtype: str) -> int:
    """Where an array begins. The caller keeps the array; the kernels read it as `dtype`, without steps."""
    assert array.dtype == np.dtype(dtype), f"the kernels read {dtype}, not {array.dtype}"
    assert array.flags.c_contiguous, "the kernels read rows without gaps"
    return array.ctypes.data
