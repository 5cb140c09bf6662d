"""Columns of events: the one shape in which interactions travel through felrec."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int32]
Times = NDArray[np.float64]
RowChange = dict[str, tuple[Rows, NDArray[Any]]]  # new values of some rows of a state, by the name of their table
T = TypeVar("T")


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


def prefixed(prefix: str, named: Mapping[str, T]) -> dict[str, T]:
    """Entries of a part of a state, named as the whole state names them."""
    return {prefix + name: value for name, value in named.items()}


def without_prefix(prefix: str, named: Mapping[str, T]) -> dict[str, T]:
    """Those entries of a whole state that `prefixed` made, under the names they have in their part.

    >>> without_prefix("item_", prefixed("item_", {"count": 3}) | {"user_count": 4})
    {'count': 3}
    """
    return {name.removeprefix(prefix): value for name, value in named.items() if name.startswith(prefix)}
