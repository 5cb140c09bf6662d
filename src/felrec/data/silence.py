"""Users and items that had no event for some time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from felrec.data.events import Events

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Active:
    """The rows of users and items that have an event at or after some time. The others are silent.

    >>> active = Active.none(users=2, items=2)
    >>> active.see(Events.of([0, 1, 1], [0, 0, 1], [1.0, 2.0, 9.0]), since=5.0)
    >>> active.users.tolist(), active.items.tolist()
    ([False, True], [False, True])
    """

    users: Mask  # by row
    items: Mask

    @classmethod
    def none(cls, users: int, items: int) -> Active:
        """Nobody yet, among so many rows."""
        return cls(np.zeros(users, dtype=bool), np.zeros(items, dtype=bool))

    def see(self, events: Events, since: float) -> None:
        """Look at events: those at or after this time make their users and items active."""
        recent = events[np.flatnonzero(events.times >= since)]
        self.users[recent.users] = True
        self.items[recent.items] = True

    def of_both(self, events: Events) -> NDArray[np.int64]:
        """The places of the events whose user and item are both active.

        Every active user and item keeps an event: the recent one that made it active, whose other side is active too.
        """
        return np.flatnonzero(self.users[events.users] & self.items[events.items])
