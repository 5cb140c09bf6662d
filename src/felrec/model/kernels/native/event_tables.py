"""The structures of events.h, for ctypes."""

from __future__ import annotations

from ctypes import Structure, c_float, c_int64, c_void_p

from felrec.model.kernels.native.tables import Counts, Encoder, Histories, Sequence, Trend


class State(Structure):
    """The tables of all signals, and the weights of the encoder."""

    _fields_ = (
        ("users", Histories),
        ("items", Histories),
        ("trend", Trend),
        ("own", Counts),
        ("near", Counts),
        ("next", Counts),
        ("ahead", Counts),
        ("profile", c_void_p),
        ("rates", c_void_p),
        ("cells", c_int64),
        ("of_users", Encoder),
        ("of_items", Encoder),
        ("seed_share", c_float),
        ("user_lengths", c_void_p),
        ("item_lengths", c_void_p),
        ("sequence", Sequence),
        ("masses", c_void_p),
        ("spread", c_void_p),
        ("whitening", c_void_p),
    )


class Block(Structure):
    """Events in time order, and apart from them the items that events spoke against."""

    _fields_ = (
        ("count", c_int64),
        ("users", c_void_p),
        ("items", c_void_p),
        ("times", c_void_p),
        ("weights", c_void_p),
        ("against", c_int64),
        ("against_items", c_void_p),
        ("against_weights", c_void_p),
    )


CHANGED = ("users", "items", "trend", "log", "near", "next", "ahead", "profile", "rates", "sequence", "whitening")
"""What a change counts rows of."""

COLUMNS = (
    *("user_rows", "user_ring", "user_count", "item_rows", "item_ring", "item_count"),
    *("trend_rows", "mass", "last", "first", "log_rows", "log_values"),
    *("own_other", "own_count", "own_nth", "own_minute"),
    *("near_rows", "near_other", "near_count", "next_rows", "next_other", "next_count"),
    *("ahead_rows", "ahead_other", "ahead_count"),
    *("profile_means", "rate_counts", "user_vectors", "item_vectors"),
    *("sequence_rows", "sequence_vectors", "sequence_masses", "sequence_spread", "sequence_whitening"),
)
"""The arrays of a change."""


class Change(Structure):
    """New values of some rows, by table."""

    _fields_ = (*((name, c_int64) for name in CHANGED), *((name, c_void_p) for name in COLUMNS))
