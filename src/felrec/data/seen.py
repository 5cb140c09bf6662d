"""Which items each user has had: for leaving them out of recommendations."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from felrec.data.events import Events, Rows

_COMPACT = 50_000  # pairs added since the last sort before it is worth sorting again


class SeenPairs:
    """The distinct (user, item) pairs so far.

    >>> seen = SeenPairs.of_events(Events.of([1, 0, 1], [5, 5, 7], [0, 1, 2]))
    >>> seen.add(Events.of([1], [6], [3]))
    >>> sorted(seen.items(1).tolist())
    [5, 6, 7]
    """

    def __init__(self, users: Rows, items: Rows) -> None:
        self._users, self._items = users, items  # sorted by user
        self._added: list[Events] = []

    @classmethod
    def of_events(cls, events: Events) -> SeenPairs:
        """From a log in any order."""
        pairs = np.unique(events.users.astype(np.int64) << 32 | events.items)
        return cls((pairs >> 32).astype(np.int32), (pairs & 0xFFFFFFFF).astype(np.int32))

    def add(self, events: Events) -> None:
        """Take in further events."""
        self._added.append(events)
        if sum(len(block) for block in self._added) >= _COMPACT:
            compacted = SeenPairs.of_events(Events.of(*self.columns(), np.zeros(len(self.columns()[0]))))
            self._users, self._items, self._added = compacted._users, compacted._items, []

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
