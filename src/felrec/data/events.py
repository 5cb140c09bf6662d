"""Columns of events: the one shape in which interactions travel through felrec."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int32]
Times = NDArray[np.float64]
RowChange = dict[str, tuple[Rows, NDArray[np.generic]]]  # new values of some rows, by what they are of


@dataclass(frozen=True)
class Events:
    """A run of interactions in time order, as rows into the vocabularies of users and items.

    >>> events = Events.of([0, 1, 0], [5, 5, 6], [10.0, 11.0, 12.0])
    >>> len(events), events[1:].items.tolist()
    (3, [5, 6])
    """

    users: Rows  # (B,)
    items: Rows  # (B,)
    times: Times  # (B,) seconds

    @classmethod
    def of(cls, users: object, items: object, times: object) -> Events:
        """Build from anything array-like."""
        return cls(
            np.asarray(users, dtype=np.int32),
            np.asarray(items, dtype=np.int32),
            np.asarray(times, dtype=np.float64),
        )

    def __len__(self) -> int:
        return len(self.users)

    def __getitem__(self, window: slice | NDArray[np.integer]) -> Events:
        return Events(self.users[window], self.items[window], self.times[window])

    def blocks(self, size: int) -> Iterator[Events]:
        """Consecutive runs of at most `size` events."""
        for start in range(0, len(self), size):
            yield self[start : start + size]
