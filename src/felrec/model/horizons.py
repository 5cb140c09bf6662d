"""How popular an item is, near and far: its events, fading at several rates at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from felrec.data.events import RowChange, Rows

HALF_LIVES = np.array([30, 100, 300, 1_000, 3_000, 10_000, 100_000], dtype=np.float32)  # in events of the log
_PACE = 256  # events after which all counts fade on: a block of `felrec evaluate`; posts to a service are smaller
_TOTAL = HALF_LIVES / np.log(np.float32(2))  # what all items together weigh, once the log is longer than that

Floats = NDArray[np.float32]


class Horizons:
    """Decayed counts of each item with all half-lives, kept as of its last event; and when it was first seen.

    They are read as of a *moment* that moves on with every block of events. Where blocks are small, as in a service, it
    waits for a few, so that in between only the rows of touched items change.

    >>> horizons = Horizons()
    >>> horizons.apply_change(horizons.change(np.array([4, 4, 2], dtype=np.int32)))
    >>> horizons.counts(np.array([4, 0], dtype=np.int32))[:, -1].round(3).tolist()
    [2.0, 0.0]
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self.events = 0  # of the log, so far
        self.moment = 0  # how many of them have made counts fade
        self.items = 0  # the highest row seen plus one
        self._mass = np.zeros((0, len(HALF_LIVES)), dtype=np.float32)
        self._last = np.zeros(0, dtype=np.int64)
        self._first = np.zeros(0, dtype=np.int64)  # number of its first event, from 1; 0: none yet

    def moment_after(self, events: int) -> int:
        """The moment once so many more have come; in a young log it keeps up with them."""
        after = self.events + events
        return after if after - self.moment >= min(_PACE, self.moment // 16) else self.moment

    def change(self, items: Rows) -> RowChange:
        """The rows of the items that these events touch, once they are taken in."""
        touched, first_place, place = np.unique(items, return_index=True, return_inverse=True)
        after = self.events + len(items)
        mass, last, first = self._read(touched)
        mass = mass * _faded(after - last)
        np.add.at(mass, place, _faded(np.arange(len(items) - 1, -1, -1)))
        first = np.where(first > 0, first, self.events + 1 + first_place)
        whole = np.zeros(1, dtype=np.int32)
        return {
            "mass": (touched, mass),
            "last": (touched, np.full(len(touched), after)),
            "first": (touched, first),
            "events": (whole, np.array([[after, self.moment_after(len(items))]])),
        }

    def apply_change(self, change: RowChange) -> None:
        """Write what `change` returned."""
        items, mass = change["mass"]
        needed, room = int(items.max(initial=-1)) + 1, len(self._last)
        if needed > room:  # by doubling, so that growth stays cheap
            more = max(needed, 2 * room) - room
            self._mass = np.concatenate([self._mass, np.zeros((more, len(HALF_LIVES)), dtype=np.float32)])
            self._last = np.concatenate([self._last, np.zeros(more, dtype=np.int64)])
            self._first = np.concatenate([self._first, np.zeros(more, dtype=np.int64)])
        self.items = max(self.items, needed)
        self._mass[items], self._last[items], self._first[items] = mass, change["last"][1], change["first"][1]
        self.events, self.moment = change["events"][1][0].tolist()

    def forget(self, items: Rows, taken: NDArray[np.int64], left: NDArray[np.int64]) -> RowChange:
        """The rows of distinct items once some of their events are taken away: counts shrink as their events do."""
        mass, last, first = self._read(items)
        stays = left > 0
        share = (left / (taken + left)).astype(np.float32)
        return {
            "mass": (items, mass * share[:, None]),
            "last": (items, last * stays),
            "first": (items, first * stays),
            "events": (np.zeros(1, dtype=np.int32), np.array([[self.events, self.moment]])),
        }

    def counts(self, items: Rows) -> Floats:
        """Decayed counts (B, horizons)."""
        mass, last, _ = self._read(items)
        return mass * _faded(np.maximum(self.moment - last, 0))

    def ages(self, items: Rows) -> NDArray[np.int64]:
        """Events of the log since the first of each item (B,); 0 for one that never came."""
        _, _, first = self._read(items)
        return np.where(first > 0, np.maximum(self.moment + 1 - first, 1), 0)

    def shares(self, counts: Floats) -> Floats:
        """Which part of all decayed events each count is."""
        parts: Floats = counts / np.clip(_TOTAL, 1, max(1, self.moment)).astype(np.float32)
        return parts

    def _read(self, items: Rows) -> tuple[Floats, NDArray[np.int64], NDArray[np.int64]]:
        if len(items) == self.items and self.items and bool((np.diff(items, prepend=-1) == 1).all()):
            whole = slice(0, self.items)  # the whole catalogue: no copy
            return self._mass[whole], self._last[whole], self._first[whole]
        known = items < self.items
        at = np.where(known, items, 0)
        if not self.items:
            return np.zeros((len(items), len(HALF_LIVES)), np.float32), *np.zeros((2, len(items)), np.int64)
        return self._mass[at] * known[:, None], self._last[at] * known, self._first[at] * known

    def state(self) -> dict[str, NDArray[np.generic]]:
        """A copy of all rows."""
        rows = slice(0, self.items)
        return {
            "mass": self._mass[rows].copy(),
            "last": self._last[rows].copy(),
            "first": self._first[rows].copy(),
            "events": np.array([[self.events, self.moment]]),
        }

    def load_state(self, state: dict[str, NDArray[np.generic]]) -> None:
        """Put back what `state` returned."""
        self._mass = np.array(state["mass"], dtype=np.float32)
        self._last = np.array(state["last"], dtype=np.int64)
        self._first = np.array(state["first"], dtype=np.int64)
        self.items = len(self._last)
        self.events, self.moment = state["events"][0].tolist()


def _faded(events: NDArray[np.integer]) -> Floats:
    """What is left (B, horizons) of a weight of one after so many events."""
    faded: Floats = np.exp2(-events.astype(np.float32)[:, None] / HALF_LIVES)
    return faded
