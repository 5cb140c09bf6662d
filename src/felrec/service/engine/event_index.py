"""Who took what when, in memory: the base of the store and its journal, found by user and by item.

It takes 24 bytes an event, and everything that is asked about single users and items is answered from it.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from felrec.data.events import Events, Rows
from felrec.data.pending import Pending
from felrec.data.seen import PAIR, PairRecords
from felrec.store.protocol import EVENT, Contents, EventRecords

Places = NDArray[np.int64]


class Column:
    """An array that grows at its end, by doubling."""

    def __init__(self, values: NDArray[np.generic]) -> None:
        self._room, self._length = values, len(values)

    def __len__(self) -> int:
        return self._length

    @property
    def values(self) -> NDArray[np.generic]:
        """All of it; a view."""
        return self._room[: self._length]

    def append(self, values: NDArray[np.generic]) -> None:
        """Add some."""
        self.grow(self._length + len(values))
        self._room[self._length - len(values) : self._length] = values

    def grow(self, length: int) -> None:
        """Make it that long, with zeros."""
        if length > len(self._room):
            room = np.zeros(max(length, 2 * len(self._room)), dtype=self._room.dtype)
            room[: self._length] = self.values
            self._room = room
        self._length = max(self._length, length)


class Postings:
    """The places of each owner's events: one sorted list for all that was there at the start, short ones since."""

    def __init__(self, owners: Rows) -> None:
        self._order = np.argsort(owners, kind="stable")
        self._starts = np.searchsorted(owners[self._order], np.arange(int(owners.max(initial=-1)) + 2))
        self._later: dict[int, array[int]] = {}

    def of(self, owner: int) -> Places:
        """In order of arrival."""
        early = self._order[:0]
        if 0 <= owner < len(self._starts) - 1:
            early = self._order[self._starts[owner] : self._starts[owner + 1]]
        later = self._later.get(owner)
        return early if later is None else np.concatenate([early, np.array(later, dtype=np.int64)])

    def append(self, owners: Rows, first: int) -> None:
        """Events of these owners at the places from `first` on."""
        for place, owner in enumerate(owners.tolist(), first):
            self._later.setdefault(owner, array("q")).append(place)


class EventIndex:
    """All events. Those of an erased user stay as empty places until the next start."""

    def __init__(self, pairs: PairRecords, parts: Places, events: EventRecords, blocks: Places) -> None:
        self.base = len(pairs)  # places below this are pairs of the base, not events
        self._users = Column(np.concatenate([pairs["user"], events["user"]]))
        self._items = Column(np.concatenate([pairs["item"], events["item"]]))
        self._times = Column(np.concatenate([pairs["time"], events["time"]]))
        self._pair_events = pairs["events"].astype(np.int64)
        self._parts = parts
        self._blocks = Column(blocks + self.base)  # where each begins, and where the last one ends
        self._of_users, self._of_items = Postings(self.users), Postings(self.items)
        self._user_events = Column(self._counted(self.users))
        self._item_events = Column(self._counted(self.items))

    @classmethod
    def of_contents(cls, contents: Contents) -> EventIndex:
        """What a store holds."""
        index = cls(contents.pairs, contents.parts, contents.events, contents.blocks)
        index._user_events.grow(len(contents.users))  # the last rows may be of erased ones, who have no events
        index._item_events.grow(len(contents.items))
        return index

    @property
    def users(self) -> Rows:
        """Of every place; -1 is empty."""
        return self._users.values  # type: ignore[return-value]

    @property
    def items(self) -> Rows:
        """Of every place."""
        return self._items.values  # type: ignore[return-value]

    @property
    def times(self) -> NDArray[np.float64]:
        """Of every place, as given; NaN where it is not known."""
        return self._times.values  # type: ignore[return-value]

    @property
    def user_events(self) -> NDArray[np.int64]:
        """Number of events of each user."""
        return self._user_events.values  # type: ignore[return-value]

    @property
    def item_events(self) -> NDArray[np.int64]:
        """Number of events of each item."""
        return self._item_events.values  # type: ignore[return-value]

    @property
    def blocks(self) -> int:
        """Number of blocks of the journal."""
        return len(self._blocks) - 1

    def append(self, block: EventRecords) -> None:
        """One more block of the journal."""
        first = len(self._users)
        for column, name in ((self._users, "user"), (self._items, "item"), (self._times, "time")):
            column.append(block[name])
        self._blocks.append(np.array([len(self._users)]))
        for postings, counts, name in (
            (self._of_users, self._user_events, "user"),
            (self._of_items, self._item_events, "item"),
        ):
            postings.append(block[name], first)
            counts.grow(int(block[name].max(initial=-1)) + 1)
            np.add.at(counts.values, block[name], 1)

    def of_user(self, user: int) -> Places:
        """Places of a user, oldest first."""
        places = self._of_users.of(user)
        return places[self.users[places] >= 0]

    def of_item(self, item: int) -> Places:
        """Places of an item, oldest first."""
        places = self._of_items.of(item)
        return places[self.users[places] >= 0]

    def seen(self, user: int) -> Rows:
        """The items that a user had, with repetitions."""
        return self.items[self.of_user(user)]

    def events_at(self, places: Places) -> NDArray[np.int64]:
        """How many events each place stands for: one, but for pairs of the base."""
        counts = np.ones(len(places), dtype=np.int64)
        counts[places < self.base] = self._pair_events[places[places < self.base]]
        return counts

    def newest_others(self, items: Rows, user: int, n: int) -> Pending:
        """For each item, the users of its last n events that are not of `user`, oldest first."""
        lists = []
        for item in items.tolist():
            users = self.users[self.of_item(item)]
            lists.append(users[users != user][-n:].tolist())
        return Pending.of(lists)

    def without(self, user: int) -> tuple[dict[int, EventRecords], dict[int, PairRecords]]:
        """The blocks and the parts of the base that a user is in, as they are without them."""
        places = self.of_user(user)
        bounds = self._blocks.values.astype(np.int64)
        numbers = np.unique(np.searchsorted(bounds, places[places >= self.base], side="right") - 1)
        parts = np.unique(np.searchsorted(self._parts, places[places < self.base], side="right") - 1)
        blocks = {int(b): self._events(range(bounds[b], bounds[b + 1]), user) for b in numbers}
        return blocks, {int(p): self._pairs(range(self._parts[p], self._parts[p + 1]), user) for p in parts}

    def block(self, number: int, without: int = -1) -> EventRecords:
        """A block of the journal, without empty places and without one user."""
        bounds = self._blocks.values
        return self._events(range(int(bounds[number]), int(bounds[number + 1])), without)

    def newest_before(self, block: int) -> float:
        """The time of the newest event of the blocks before this one; 0 if there is none."""
        return float(self.times[self.base : int(self._blocks.values[block])].max(initial=0.0))

    def forget(self, user: int) -> None:
        """Empty the places of a user."""
        places = self.of_user(user)
        items = self.items[places]
        np.subtract.at(self.item_events, items, self.events_at(places))
        self.users[places], self.items[places], self.times[places] = -1, -1, 0
        self.user_events[user] = 0

    def _events(self, window: Iterable[int], without: int) -> EventRecords:
        kept = self._kept(window, without)
        records = np.empty(len(kept), dtype=EVENT)
        records["user"], records["item"], records["time"] = self.users[kept], self.items[kept], self.times[kept]
        return records

    def _pairs(self, window: Iterable[int], without: int) -> PairRecords:
        kept = self._kept(window, without)
        records = np.empty(len(kept), dtype=PAIR)
        records["user"], records["item"], records["time"] = self.users[kept], self.items[kept], self.times[kept]
        records["events"] = self._pair_events[kept]
        return records

    def _kept(self, window: Iterable[int], without: int) -> Places:
        places = np.array(window, dtype=np.int64)
        users = self.users[places]
        kept: Places = places[(users >= 0) & (users != without)]
        return kept

    def _counted(self, owners: Rows) -> NDArray[np.int64]:
        weights = self.events_at(np.arange(len(owners)))
        counts = np.zeros(int(owners.max(initial=-1)) + 1, dtype=np.int64)
        np.add.at(counts, owners, weights)
        return counts


def as_events(records: EventRecords, clock: float) -> Events:
    """A block as the model sees it: its time never runs backwards."""
    times = np.maximum.accumulate(np.maximum(records["time"], clock)) if len(records) else records["time"]
    return Events.of(records["user"], records["item"], times)
