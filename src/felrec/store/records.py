"""Encode events as bytes for a store, and decode them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from felrec.data.events import Events

EVENT = np.dtype([("user", "<i4"), ("item", "<i4"), ("time", "<f8")])
"""A journalled event: rows of the user and the item, and the time as given by the client."""
WEIGHTED = np.dtype([*EVENT.descr, ("weight", "<f4")])
"""An event of a block in which some have a weight."""

_WITH_WEIGHTS = b"w"  # before such a block: an odd number of bytes, which a block of plain events never has


def encode_events(events: Events) -> bytes:
    """Encode a block of events.

    >>> len(encode_events(Events.of([1, 2], [3, 4], [5.0, 6.0]))) == 2 * EVENT.itemsize
    True
    """
    plain = events.weights is None or np.isnan(events.weights).all()
    records = np.empty(len(events), dtype=EVENT if plain else WEIGHTED)
    records["user"], records["item"], records["time"] = events.users, events.items, events.times
    if plain:
        return records.tobytes()
    records["weight"] = events.weights
    return _WITH_WEIGHTS + records.tobytes()


def events_in(size: int) -> int | None:
    """The number of events in a block of so many bytes; None if no block has this size.

    >>> events_in(0), events_in(32), events_in(41), events_in(40)
    (0, 2, 2, None)
    """
    count, rest = divmod(size - 1, WEIGHTED.itemsize) if size % 2 else divmod(size, EVENT.itemsize)
    return None if rest else count


def joined_blocks(blocks: Sequence[bytes]) -> NDArray[np.void]:
    """The records of valid blocks, one after the other: of dtype WEIGHTED if any block has weights."""
    plain, weighted = ([block for block in blocks if len(block) % 2 == odd] for odd in (0, 1))
    without = np.frombuffer(b"".join(plain), dtype=EVENT)
    if not weighted:
        return without.copy()
    places = np.repeat([len(block) % 2 == 1 for block in blocks], [events_in(len(block)) or 0 for block in blocks])
    records = np.empty(len(places), dtype=WEIGHTED)
    records[places] = np.frombuffer(b"".join(block[1:] for block in weighted), dtype=WEIGHTED)
    upgraded = np.empty(len(without), dtype=WEIGHTED)
    for name in EVENT.names or ():
        upgraded[name] = without[name]
    upgraded["weight"] = np.nan
    records[~places] = upgraded
    return records


def decode_events(records: NDArray[np.void]) -> Events:
    """Decode records of dtype EVENT or WEIGHTED."""
    return Events(*(np.ascontiguousarray(records[name]) for name in records.dtype.names or ()))
