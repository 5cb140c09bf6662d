"""The items that each user already has, to exclude them from recommendations."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from felrec.data.events import Events, Rows

PAIR = np.dtype([("user", "<i4"), ("item", "<i4"), ("events", "<i4"), ("time", "<f8")])
"""A user, an item, the number of their events and the time of the last one (NaN if unknown).

The number is negative if the last event spoke against the item.
"""

PairRecords = NDArray[np.void]  # of dtype PAIR, sorted by the pair's last event

_COMPACT_SHARE = 0.1  # of the sorted pairs, so that the cost of sorting again stays proportional
_COMPACT_LEAST = 1_000


def pair_records(events: Events) -> PairRecords:
    """One record per distinct pair of a log.

    >>> pair_records(Events.of([1, 0, 1], [5, 5, 5], [0, 1, 2])).tolist()
    [(0, 5, 1, 1.0), (1, 5, 2, 2.0)]
    """
    keys = events.users.astype(np.int64) << 32 | events.items
    _, from_the_end, counts = np.unique(keys[::-1], return_index=True, return_counts=True)
    last = len(keys) - 1 - from_the_end
    order = np.argsort(last)
    last = last[order]
    records = np.empty(len(last), dtype=PAIR)
    records["user"], records["item"], records["time"] = events.users[last], events.items[last], events.times[last]
    records["events"] = counts[order]
    if events.weights is not None:
        records["events"][events.weights[last] < 0] *= -1
    return records


def merged(records: PairRecords, newer: PairRecords) -> PairRecords:
    """The records of two sets of pairs as one; the newer ones have the later events.

    >>> merged(pair_records(Events.of([1, 0], [5, 5], [0, 1])), pair_records(Events.of([1], [5], [2]))).tolist()
    [(0, 5, 1, 1.0), (1, 5, 2, 2.0)]
    """
    both = np.concatenate([records, newer])
    keys = both["user"].astype(np.int64) << 32 | both["item"]
    _, from_the_end, pair = np.unique(keys[::-1], return_index=True, return_inverse=True)
    last = len(keys) - 1 - from_the_end
    events = np.bincount(pair[::-1], weights=np.abs(both["events"]))
    order = np.argsort(last)
    found: PairRecords = both[last[order]]
    found["events"] = np.copysign(events[order], found["events"])
    return found


class RejectedItems:
    """The items that each user's last event with them spoke against.

    >>> rejected = RejectedItems(pair_records(Events.of([1, 1], [5, 6], [0, 1], [-1, 1])))
    >>> rejected.add(Events.of([1, 1], [5, 7], [2, 3], [1, -1]))
    >>> rejected.items(1).tolist()
    [7]
    """

    def __init__(self, records: PairRecords) -> None:
        self._of: dict[int, set[int]] = {}
        for record in records[records["events"] < 0]:
            self._of.setdefault(int(record["user"]), set()).add(int(record["item"]))

    def add(self, events: Events) -> None:
        """Follow further events."""
        if events.weights is None and not self._of:  # as in most logs
            return
        weights = np.ones(len(events)) if events.weights is None else events.weights
        for user, item, against in zip(
            events.users.tolist(), events.items.tolist(), (weights < 0).tolist(), strict=True
        ):
            if against:
                self._of.setdefault(user, set()).add(item)
            elif user in self._of:
                self._of[user].discard(item)

    def items(self, user: int) -> Rows:
        """The items that a user rejected, ascending."""
        return np.array(sorted(self._of.get(user, ())), dtype=np.int32)


class SeenPairs:
    """The distinct (user, item) pairs of the events added so far.

    >>> seen = SeenPairs.of_events(Events.of([1, 0, 1], [5, 5, 7], [0, 1, 2]))
    >>> seen.add(Events.of([1], [6], [3]))
    >>> sorted(seen.items(1).tolist())
    [5, 6, 7]
    """

    def __init__(self, users: Rows, items: Rows) -> None:
        self._users, self._items = users, items  # sorted by user
        self._added: list[Events] = []
        self._waiting = 0  # number of events in `_added`

    @classmethod
    def of_events(cls, events: Events) -> SeenPairs:
        """Build from events in any order."""
        pairs = np.unique(events.users.astype(np.int64) << 32 | events.items)
        return cls((pairs >> 32).astype(np.int32), (pairs & 0xFFFFFFFF).astype(np.int32))

    @classmethod
    def of_records(cls, records: PairRecords) -> SeenPairs:
        """Build from records in any order."""
        order = np.argsort(records["user"], kind="stable")
        return cls(records["user"][order], records["item"][order])

    def add(self, events: Events) -> None:
        """Add the pairs of further events."""
        self._added.append(events)
        self._waiting += len(events)
        if self._waiting >= max(_COMPACT_LEAST, _COMPACT_SHARE * len(self._users)):
            users, items = self.columns()
            compacted = SeenPairs.of_events(Events.of(users, items, np.zeros(len(users))))
            self._users, self._items, self._added, self._waiting = compacted._users, compacted._items, [], 0

    def items(self, user: int) -> Rows:
        """Distinct items of one user."""
        start, stop = np.searchsorted(self._users, [user, user + 1])
        recent = [block.items[block.users == user] for block in self._added]
        return np.unique(np.concatenate([self._items[start:stop], *recent]))

    def columns(self) -> tuple[Rows, Rows]:
        """All pairs as two columns, sorted unless events were added since."""
        users: NDArray[np.int32] = np.concatenate([self._users, *(block.users for block in self._added)])
        items: NDArray[np.int32] = np.concatenate([self._items, *(block.items for block in self._added)])
        return users, items
