"""Encode events as bytes for a store, and decode them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from felrec.data.events import Events

EVENT = np.dtype([("user", "<i4"), ("item", "<i4"), ("time", "<f8")])
"""A journalled event: rows of the user and the item, and the time as given by the client."""


def encode_events(events: Events) -> bytes:
    """Encode a block of events.

    >>> len(encode_events(Events.of([1, 2], [3, 4], [5.0, 6.0]))) == 2 * EVENT.itemsize
    True
    """
    records = np.empty(len(events), dtype=EVENT)
    records["user"], records["item"], records["time"] = events.users, events.items, events.times
    return records.tobytes()


def decode_events(records: NDArray[np.void]) -> Events:
    """Decode records of dtype EVENT."""
    return Events(*(np.ascontiguousarray(records[name]) for name in ("user", "item", "time")))
