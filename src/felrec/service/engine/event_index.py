"""All events in memory, of the store's base and its journal, indexed by user and by item.

It takes 32 to 40 bytes per event. All questions about single users and items are answered from it.
"""

from __future__ import annotations

from array import array
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from felrec.data.events import BEGINNING, Events, Rows
from felrec.data.pending import Pending
from felrec.data.seen import PAIR, PairRecords
from felrec.data.tables.growing import GrowingArray
from felrec.store.protocol import Contents, Unfinished
from felrec.store.unfinished import holding

Places = NDArray[np.int64]


class Postings:
    """The places of each owner's events: one sorted array for events at the start, a run of a shared array since.

    The room of a run is a power of two. A full run moves to a run of twice its room and leaves its own to others.

    >>> postings = Postings(np.array([1, 0, 1], dtype=np.int32))
    >>> postings.append(np.array([1, 5], dtype=np.int32), 3)
    >>> postings.of(1).tolist(), postings.of(5).tolist(), postings.of(9).tolist()
    ([0, 2, 3], [4], [])
    """

    def __init__(self, owners: Rows) -> None:
        self._order = np.argsort(owners, kind="stable")
        self._starts = np.searchsorted(owners[self._order], np.arange(int(owners.max(initial=-1)) + 2))
        self._later: array[int] = array("q")  # the runs
        self._run, self._events = array("q"), array("q")  # of each owner: where its run begins, and its length
        self._free: dict[int, list[int]] = {}  # runs that were left, by their room

    def of(self, owner: int) -> Places:
        """The places of an owner's events, in order of arrival."""
        early = self._order[:0]
        if 0 <= owner < len(self._starts) - 1:
            early = self._order[self._starts[owner] : self._starts[owner + 1]]
        if not 0 <= owner < len(self._run):
            return early
        run = self._run[owner]
        return np.concatenate([early, np.array(self._later[run : run + self._events[owner]], dtype=np.int64)])

    def append(self, owners: Rows, first: int) -> None:
        """Add events of these owners at the places from `first` on."""
        unknown = int(owners.max(initial=-1)) + 1 - len(self._run)
        self._run.extend(repeat(0, unknown))
        self._events.extend(repeat(0, unknown))
        for place, owner in enumerate(owners.tolist(), first):
            events = self._events[owner]
            if events & (events - 1) == 0:  # none yet, or a power of two: its run is full
                self._move(owner, events)
            self._later[self._run[owner] + events] = place
            self._events[owner] = events + 1

    def _move(self, owner: int, events: int) -> None:
        """Give an owner a run of twice the room."""
        room, before = 2 * events or 1, self._run[owner]
        if free := self._free.get(room):
            run = free.pop()
        else:
            run = len(self._later)
            self._later.extend(repeat(0, room))
        if events:
            self._later[run : run + events] = self._later[before : before + events]
            self._free.setdefault(events, []).append(before)
        self._run[owner] = run


class EventIndex:
    """All events by place. The places of an erased user stay empty until the next start."""

    def __init__(self, contents: Contents) -> None:
        pairs, events = contents.pairs, contents.events
        self.base = len(pairs)  # places below this are pairs of the base, not events
        self._users = _column(np.concatenate([pairs["user"], events.users]))
        self._items = _column(np.concatenate([pairs["item"], events.items]))
        self._times = _column(np.concatenate([pairs["time"], events.times]))
        self._pair_events = pairs["events"].astype(np.int64)
        self._parts = contents.parts
        self._blocks = _column(contents.blocks + self.base)  # boundaries of the blocks
        self._of_users, self._of_items = Postings(self.users), Postings(self.items)
        # The last rows may belong to erased users and items, which have no events.
        self._user_events = _column(self._counted(self.users, len(contents.users)))
        self._item_events = _column(self._counted(self.items, len(contents.items)))

    @property
    def users(self) -> Rows:
        """The user of every place; -1: empty."""
        return self._users.values

    @property
    def items(self) -> Rows:
        """The item of every place."""
        return self._items.values

    @property
    def times(self) -> NDArray[np.float64]:
        """The time of every place, as given by the client; NaN: unknown."""
        return self._times.values

    @property
    def user_events(self) -> NDArray[np.int64]:
        """Number of events of each user."""
        return self._user_events.values

    @property
    def item_events(self) -> NDArray[np.int64]:
        """Number of events of each item."""
        return self._item_events.values

    @property
    def blocks(self) -> int:
        """Number of blocks of the journal."""
        return len(self._blocks) - 1

    def append(self, block: Events) -> None:
        """Add a block of the journal."""
        first = len(self._users)
        self._users.append(block.users)
        self._items.append(block.items)
        self._times.append(block.times)
        self._blocks.append(np.array([len(self._users)]))
        for postings, counts, rows in (
            (self._of_users, self._user_events, block.users),
            (self._of_items, self._item_events, block.items),
        ):
            postings.append(rows, first)
            counts.grow(int(rows.max(initial=-1)) + 1)
            np.add.at(counts.values, rows, 1)

    def of_user(self, user: int) -> Places:
        """Places of a user, oldest first."""
        places = self._of_users.of(user)
        return places[self.users[places] >= 0]

    def of_item(self, item: int) -> Places:
        """Places of an item, oldest first."""
        places = self._of_items.of(item)
        return places[self.users[places] >= 0]

    def seen(self, user: int) -> Rows:
        """The items of a user's events, with repetitions."""
        return self.items[self.of_user(user)]

    def events_at(self, places: Places) -> NDArray[np.int64]:
        """The number of events at each place: one, except for pairs of the base."""
        counts = np.ones(len(places), dtype=np.int64)
        counts[places < self.base] = self._pair_events[places[places < self.base]]
        return counts

    def newest_users(self, items: Rows, n: int) -> Pending:
        """For each item, the users of its last n events, oldest first."""
        return Pending.of([self.users[self.of_item(item)[-n:]].tolist() for item in items.tolist()])

    def erasure_of(self, user: int) -> Unfinished:
        """What the erasure of a user has to remove."""
        places = self.of_user(user)
        blocks, parts = places[places >= self.base], places[places < self.base]
        return Unfinished(
            user,
            self.items[places],
            self.events_at(places),
            holding(blocks, self._blocks.values),
            holding(parts, self._parts),
        )

    def block(self, number: int) -> Events:
        """A block of the journal, without empty places."""
        kept = self._kept(self._blocks.values, number)
        return Events(self.users[kept], self.items[kept], self.times[kept])

    def part(self, number: int) -> PairRecords:
        """A part of the base, without empty places."""
        kept = self._kept(self._parts, number)
        records = np.empty(len(kept), dtype=PAIR)
        records["user"], records["item"], records["time"] = self.users[kept], self.items[kept], self.times[kept]
        records["events"] = self._pair_events[kept]
        return records

    def newest_before(self, block: int) -> float:
        """The time of the newest event of the blocks before this one, if there is any."""
        return float(self.times[self.base : int(self._blocks.values[block])].max(initial=BEGINNING))

    def forget(self, user: int) -> None:
        """Erase the events of a user."""
        places = self.of_user(user)
        items = self.items[places]
        np.subtract.at(self.item_events, items, self.events_at(places))
        self.users[places], self.items[places], self.times[places] = -1, -1, BEGINNING
        self.user_events[user] = 0

    def _kept(self, bounds: Places, number: int) -> Places:
        places = np.arange(bounds[number], bounds[number + 1], dtype=np.int64)
        return places[self.users[places] >= 0]

    def _counted(self, owners: Rows, count: int) -> NDArray[np.int64]:
        counts = np.zeros(count, dtype=np.int64)
        np.add.at(counts, owners, self.events_at(np.arange(len(owners))))
        return counts


def _column(values: NDArray[Any]) -> GrowingArray:
    column = GrowingArray(values.dtype)
    column.load(values)
    return column
