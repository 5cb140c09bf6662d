"""Decayed event counts of each item, at several half-lives.

**Now.** Counts are read as of the last *moment*, which is the last multiple of 64 events: events up to it have decayed
since, events after it count in full. This holds for every item, however events are cut into blocks. (In a log of fewer
than 64 events every event is a moment.) Between two moments only the features of touched items change, which a service
can afford after every event.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from felrec.data.events import Against, RowChange, Rows
from felrec.data.tables.growing import GrowingArray
from felrec.data.tables.table import TableState

TREND_HALF_LIVES = np.array([30, 100, 300, 1_000, 3_000, 10_000, 100_000], dtype=np.float32)  # in events of the log
PACE = 64  # events between two moments; part of the format of a state. Fewer cost a service more and gain nothing
_NOT_COUNTED = -1
_ONE = np.float32(1).view(np.uint32)
_TOTAL = TREND_HALF_LIVES / np.log(np.float32(2))  # the decayed count of all items, once the log is long enough

Floats = NDArray[np.float32]


class TrendCounts:
    """Decayed counts of each item at all half-lives, and the number of its first event.

    >>> counts = TrendCounts()
    >>> counts.apply_change(counts.change(np.array([4, 4, 2], dtype=np.int32)))
    >>> counts.decayed(np.array([4, 0], dtype=np.int32))[:, -1].round(3).tolist()
    [2.0, 0.0]
    """

    def __init__(self) -> None:
        self._mass = GrowingArray(np.float32, (len(TREND_HALF_LIVES),))  # of events up to the last moment
        self._last = GrowingArray(np.int64)  # the event up to which `mass` has decayed
        self._first = GrowingArray(np.int64)  # number of the item's first event, from 1; 0: none yet
        self.clear()

    def clear(self) -> None:
        """Remove all counts."""
        # Row 0: events so far, and the last moment. Then one row per event since: its number and its item, or -1 if
        # the event does not count, or is already part of `mass`. Rows with older numbers belong to an earlier moment.
        # The upper half of an item has what its event is worth (`_logged`), and is 0 if that is 1.
        self.log = np.zeros((PACE, 2), dtype=np.int64)
        self.items = 0  # number of items with events
        for column in self.growing.values():
            column.clear()

    @property
    def growing(self) -> dict[str, GrowingArray]:
        """The arrays of items."""
        return {"mass": self._mass, "last": self._last, "first": self._first}

    @property
    def events(self) -> int:
        """Events of the log, so far."""
        return int(self.log[0, 0])

    @property
    def moment(self) -> int:
        """The event up to which counts have decayed."""
        return int(self.log[0, 1])

    def moment_after(self, events: int) -> int:
        """The last moment after applying this many more events."""
        after = self.events + events
        return after if after < PACE else max(self.moment, after // PACE * PACE)

    def change(self, items: Rows, worth: Floats | None = None, against: Against | None = None) -> RowChange:
        """The rows that events of `items` change: each adds what it is worth, even 0, and time passes.

        What speaks against an item with events is taken from its counts as of the last moment, down to 0.
        """
        after, moment = self.events + len(items), self.moment_after(len(items))
        numbers = np.arange(self.events + 1, after + 1)
        logged = items.astype(np.int64) if worth is None else _logged(items, worth)
        fresh: NDArray[np.int64] = np.stack([numbers, logged], axis=1)
        recorded, decaying = len(self._recorded()), fresh[:0]
        if moment > self.moment:
            recorded, decaying = 0, np.concatenate([self._since(), _counted(fresh[numbers <= moment])])
        later = fresh[numbers > moment]
        lowered, amount = self._lowered(against)
        bounds = np.cumsum([len(decaying), len(items)])
        touched, place = np.unique(np.concatenate([_items(decaying), items, lowered]), return_inverse=True)
        in_decaying, in_items, in_lowered = np.split(place, bounds)
        touched = touched.astype(np.int32)
        mass, last = self._mass.read(touched), self._last.read(touched)
        if moment > self.moment:
            mass *= _decay(moment - last)
            np.add.at(mass, in_decaying, _decay(moment - decaying[:, 0]) * _worth(decaying)[:, None])
            last[:] = moment
        if len(lowered):
            now = mass[in_lowered] * _decay(moment - last[in_lowered])
            mass[in_lowered], last[in_lowered] = np.maximum(now - amount[:, None], 0), moment
        return {
            "mass": (touched, mass),
            "last": (touched, last),
            "first": (touched, self._first_events(touched, in_items, numbers)),
            "events": (
                np.append(0, 1 + recorded + np.arange(len(later))).astype(np.int32),
                np.concatenate([[[after, moment]], later]),
            ),
        }

    def _lowered(self, against: Against | None) -> tuple[Rows, Floats]:
        """Items whose counts are lowered, and by how much; those without events have none."""
        if against is None:
            return np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.float32)
        known = self._first.read(against.items) > 0
        return against.items[known], against.weights[known]

    def _first_events(self, touched: Rows, place: NDArray[np.integer], numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Numbers of the first events of items, `place` being which of them each event is of."""
        first, earliest = self._first.read(touched), np.full(len(touched), np.iinfo(np.int64).max)
        np.minimum.at(earliest, place, numbers)
        return np.where(first > 0, first, earliest)

    def _recorded(self) -> NDArray[np.int64]:
        """The rows of events since the last moment."""
        return self.log[1:][self.log[1:, 0] > self.moment]

    def _since(self) -> NDArray[np.int64]:
        """Number and item (M, 2) of the events since the last moment that are not part of `mass`."""
        return _counted(self._recorded())

    def apply_change(self, change: RowChange) -> None:
        """Copy the rows of a change."""
        items, first = change["first"]
        self.items += int(np.count_nonzero(first) - np.count_nonzero(self._first.read(items)))
        for name, column in self.growing.items():
            column.write(*change[name])
        rows, values = change["events"]
        self.log[rows] = values

    def forget(self, items: Rows, taken: NDArray[np.int64], left: NDArray[np.int64]) -> RowChange:
        """The rows of distinct items after removing some of their events: counts shrink in proportion."""
        stays = left > 0
        share = (left / (taken + left)).astype(np.float32)
        log = self.log.copy()
        log[1:, 1][np.isin(_items(log[1:]), items)] = _NOT_COUNTED  # from now on these are part of `mass`
        return {
            "mass": (items, self.decayed(items) * share[:, None]),
            "last": (items, np.where(stays, self.moment, 0)),
            "first": (items, self._first.read(items) * stays),
            "events": (np.arange(len(log), dtype=np.int32), log),
        }

    def decayed(self, items: Rows) -> Floats:
        """Decayed counts (B, half-lives), as of now."""
        mass: Floats = self._mass.read(items) * _decay(self.moment - self._last.read(items))
        since = self._since()
        if len(since):
            counts = np.bincount(_items(since), _worth(since), minlength=int(items.max(initial=0)) + 1)
            mass += counts[items].astype(np.float32)[:, None]
        return mass

    def ages(self, items: Rows) -> NDArray[np.int64]:
        """Events of the log since each item's first event (B,), at least 1; 0 for an item without events."""
        first = self._first.read(items)
        return np.where(first > 0, np.maximum(self.moment + 1 - first, 1), 0)

    def shares(self, decayed: Floats) -> Floats:
        """Decayed counts as shares of the total over all items."""
        parts: Floats = decayed / np.clip(_TOTAL, 1, max(1, self.moment)).astype(np.float32)
        return parts

    def view(self) -> TableState:
        """All rows, without a copy."""
        return {**{name: column.values for name, column in self.growing.items()}, "events": self.log}

    def state(self) -> TableState:
        """A copy of all rows."""
        return {name: values.copy() for name, values in self.view().items()}

    def load_state(self, state: TableState) -> None:
        """Restore what `state` returned."""
        self.clear()
        for name, column in self.growing.items():
            column.load(state[name])
        self.items = int(np.count_nonzero(self._first.values))
        rows = state["events"][:PACE]  # a state of format 1 has only the first row
        self.log[: len(rows)] = rows


def _counted(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Those rows of events, number and item (M, 2), that count."""
    counted: NDArray[np.int64] = rows[rows[:, 1] != _NOT_COUNTED]
    return counted


def _logged(items: Rows, worth: Floats) -> NDArray[np.int64]:
    """An item and what its event is worth in one number, which is the item itself if that is 1; -1 if it is 0.

    >>> logged = _logged(np.array([7, 7, 7], np.int32), np.array([1, 2.5, 0], np.float32))
    >>> int(logged[0]), _items(logged[:2, None].repeat(2, 1)).tolist(), int(logged[2])
    (7, [7, 7], -1)
    """
    bits = (worth.astype(np.float32).view(np.uint32) ^ _ONE).astype(np.int64)
    return np.where(worth > 0, bits << 32 | items, _NOT_COUNTED)


def _items(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """The items of rows of events (M, 2) that count."""
    return rows[:, 1] & 0xFFFFFFFF


def _worth(rows: NDArray[np.int64]) -> Floats:
    """What rows of events (M, 2) that count are worth."""
    worth: Floats = ((rows[:, 1] >> 32).astype(np.uint32) ^ _ONE).view(np.float32)
    return worth


def _decay(events: NDArray[np.integer]) -> Floats:
    """The remaining share (B, half-lives) of a weight after this many events; 1 for negative numbers."""
    left: Floats = np.exp2(-np.maximum(events, 0).astype(np.float32)[:, None] / TREND_HALF_LIVES)
    return left
