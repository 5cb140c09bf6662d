"""All events in memory, of the store's base and its journal, indexed by user and by item.

It takes 32 to 40 bytes per event. All questions about single users and items are answered from it.
"""

from __future__ import annotations

from array import array
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from felrec.data.events import BEGINNING, Events, Rows, joined_weights
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
        self._weights = _weights_of(pairs, events)
        self._pair_events = np.abs(pairs["events"]).astype(np.int64)
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
        self._append_weights(block)
        self._blocks.append(np.array([len(self._users)]))
        for postings, counts, rows in (
            (self._of_users, self._user_events, block.users),
            (self._of_items, self._item_events, block.items),
        ):
            postings.append(rows, first)
            counts.grow(int(rows.max(initial=-1)) + 1)
            np.add.at(counts.values, rows, 1)

    def _append_weights(self, block: Events) -> None:
        if self._weights is None and block.weights is not None:
            self._weights = _column(np.full(len(self._users) - len(block), np.nan, dtype=np.float32))
        if self._weights is not None:
            given = block.weights
            self._weights.append(np.full(len(block), np.nan, np.float32) if given is None else given)

    @property
    def weighted(self) -> bool:
        """Whether events may be worth more or less than others."""
        return self._weights is not None

    @property
    def counts(self) -> NDArray[np.bool_]:
        """Whether what is at each place counts: it is neither empty, nor context, nor against its item."""
        there: NDArray[np.bool_] = self.users >= 0
        return there if self._weights is None else there & ~(self._weights.values <= 0)

    @property
    def favourable(self) -> NDArray[np.bool_]:
        """Whether what is at each place counts or is context."""
        there: NDArray[np.bool_] = self.users >= 0
        return there if self._weights is None else there & ~(self._weights.values < 0)

    def not_against(self, places: Places) -> Places:
        """Those of the places whose events do not speak against their items."""
        return places if self._weights is None else places[~(self._weights.values[places] < 0)]

    def rejected(self, user: int) -> Rows:
        """The items that a user's last event with them spoke against, ascending."""
        if self._weights is None:
            return self.items[:0]
        backwards = self.of_user(user)[::-1]
        items, newest = np.unique(self.items[backwards], return_index=True)
        return items[self._weights.values[backwards[newest]] < 0]

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
        return self.between(*self._blocks.values[number : number + 2].tolist())

    def between(self, first: int, end: int) -> Events:
        """The events at these places, without empty ones."""
        kept = self._there(first, end)
        weights = None if self._weights is None else self._weights.values[kept]
        return Events(self.users[kept], self.items[kept], self.times[kept], weights)

    def part(self, number: int) -> PairRecords:
        """A part of the base, without empty places."""
        kept = self._there(*self._parts[number : number + 2].tolist())
        records = np.empty(len(kept), dtype=PAIR)
        records["user"], records["item"], records["time"] = self.users[kept], self.items[kept], self.times[kept]
        against = np.zeros(len(kept), bool) if self._weights is None else self._weights.values[kept] < 0
        records["events"] = np.where(against, -1, 1) * self._pair_events[kept]
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

    def _there(self, first: int, end: int) -> Places:
        places = np.arange(first, end, dtype=np.int64)
        return places[self.users[places] >= 0]

    def _counted(self, owners: Rows, count: int) -> NDArray[np.int64]:
        counts = np.zeros(count, dtype=np.int64)
        np.add.at(counts, owners, self.events_at(np.arange(len(owners))))
        return counts


def _weights_of(pairs: PairRecords, events: Events) -> GrowingArray | None:
    """The weights of all places; of a pair only whether it speaks against the item. None: there are none."""
    if events.weights is None and not (pairs["events"] < 0).any():
        return None
    of_pairs = np.where(pairs["events"] < 0, np.float32(-1), np.float32(np.nan))
    both = joined_weights([(of_pairs, len(pairs)), (events.weights, len(events))])
    return None if both is None else _column(both)


def _column(values: NDArray[Any]) -> GrowingArray:
    column = GrowingArray(values.dtype)
    column.load(values)
    return column
