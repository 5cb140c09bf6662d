"""An erasure that is not finished: its note in the store, and the user's events that are still there."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from felrec.data.events import Rows
from felrec.store.protocol import Unfinished

Records = NDArray[np.void]
Bounds = NDArray[np.int64]


def erasing_note(user: int, rewritten: int) -> str:
    """The note of an unfinished erasure."""
    return f"{user} {rewritten}"


def without_unfinished(
    note: str | None, pairs: Records, parts: Bounds, events: Records, blocks: Bounds
) -> tuple[Records, Bounds, Records, Bounds, Unfinished | None]:
    """The records and boundaries without those of the user in the note, and what is left to erase."""
    if not note:
        return pairs, parts, events, blocks, None
    user, rewritten = map(int, note.split())
    in_pairs, in_events = pairs["user"] == user, events["user"] == user
    items: Rows = np.concatenate([pairs["item"][in_pairs], events["item"][in_events]])
    counts = np.concatenate(
        [np.abs(pairs["events"][in_pairs]).astype(np.int64), np.ones(int(in_events.sum()), np.int64)]
    )
    blocks_left, parts_left = holding(np.flatnonzero(in_events), blocks), holding(np.flatnonzero(in_pairs), parts)
    left = Unfinished(user, items, counts, blocks_left, parts_left, rewritten)
    return pairs[~in_pairs], _bounds(in_pairs, parts), events[~in_events], _bounds(in_events, blocks), left


def holding(places: NDArray[np.int64], bounds: Bounds) -> list[int]:
    """The numbers of the ranges between `bounds` that hold some of these places.

    >>> holding(np.array([1, 2]), np.array([0, 1, 3, 4]))
    [1]
    """
    numbers: list[int] = np.unique(np.searchsorted(bounds, places, side="right") - 1).tolist()
    return numbers


def _bounds(gone: NDArray[np.bool_], bounds: Bounds) -> Bounds:
    """The boundaries once some records are gone."""
    before: Bounds = np.append(0, np.cumsum(gone, dtype=np.int64))
    return bounds - before[bounds]
