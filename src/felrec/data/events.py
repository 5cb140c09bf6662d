"""Columns of events: the form in which interactions are passed through felrec."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int32]
Times = NDArray[np.float64]
RowChange = dict[str, tuple[Rows, NDArray[Any]]]  # new values of some rows of a state, by the name of their table
BEGINNING = -62_135_596_800.0  # the year 1, where the calendar of ISO 8601 begins: no event is earlier
T = TypeVar("T")


@dataclass(frozen=True)
class Events:
    """Consecutive interactions in time order, as rows of the user and item vocabularies.

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

    @classmethod
    def joined(cls, parts: Sequence[Events]) -> Events:
        """Concatenate several; none are no events."""
        columns = zip(*((part.users, part.items, part.times) for part in parts), strict=True)
        return cls(*map(np.concatenate, columns)) if parts else cls.of([], [], [])

    def __len__(self) -> int:
        return len(self.users)

    def __getitem__(self, window: slice | NDArray[np.integer]) -> Events:
        return Events(self.users[window], self.items[window], self.times[window])

    def blocks(self, size: int) -> Iterator[Events]:
        """Consecutive blocks of at most `size` events."""
        for start in range(0, len(self), size):
            yield self[start : start + size]

    def not_before(self, clock: float) -> Events:
        """The same events with each time raised to at least `clock` and to every time before it.

        >>> Events.of([0, 1, 0], [5, 5, 6], [10.0, 12.0, 11.0]).not_before(11.0).times.tolist()
        [11.0, 12.0, 12.0]
        """
        return Events(self.users, self.items, np.maximum.accumulate(np.maximum(self.times, clock)))


@dataclass(frozen=True)
class EventColumns:
    """Interactions with external ids, as a client or a log gives them.

    >>> given = EventColumns.of(["ada", "bob", "ada"], ["tea", "jam", "rye"], [7.0, None, 5.0])
    >>> given.in_time_order(now=6.0)
    EventColumns(users=['ada', 'bob', 'ada'], items=['rye', 'jam', 'tea'], times=array([5., 6., 7.]))
    """

    users: list[str]
    items: list[str]
    times: Times  # (B,) seconds; NaN means now
    numbers: NDArray[np.int64] | None = field(default=None, repr=False)  # (B,) of the sender's rows; None: 0, 1, 2 …

    @classmethod
    def of(
        cls,
        users: list[str],
        items: list[str],
        times: Sequence[float | None],
        numbers: Sequence[int] | None = None,
    ) -> EventColumns:
        """Build from lists; a time of None means now."""
        numbered = None if numbers is None else np.array(numbers, dtype=np.int64)
        return cls(users, items, np.array(times, dtype=np.float64), numbered)

    @classmethod
    def joined(cls, parts: Sequence[EventColumns]) -> EventColumns:
        """Concatenate several."""
        if len(parts) == 1:
            return parts[0]
        users, items = [user for part in parts for user in part.users], [item for part in parts for item in part.items]
        return cls(users, items, np.concatenate([part.times for part in parts]))

    def __len__(self) -> int:
        return len(self.users)

    def __getitem__(self, places: NDArray[np.int64]) -> EventColumns:
        at = places.tolist()
        numbers = places if self.numbers is None else self.numbers[places]
        return EventColumns([self.users[n] for n in at], [self.items[n] for n in at], self.times[places], numbers)

    def number(self, place: int) -> int:
        """The number of a row in what the sender gave."""
        return place if self.numbers is None else int(self.numbers[place])

    def blocks(self, size: int) -> Iterator[EventColumns]:
        """Consecutive blocks of at most `size` events."""
        for window in (slice(start, start + size) for start in range(0, len(self), size)):
            yield EventColumns(self.users[window], self.items[window], self.times[window])

    def in_time_order(self, now: float) -> EventColumns:
        """Sort by time, with `now` for events without a time; ties keep their order."""
        times = np.where(np.isnan(self.times), now, self.times)
        timed = EventColumns(self.users, self.items, times, self.numbers)
        return timed if (times[1:] >= times[:-1]).all() else timed[np.argsort(times, kind="stable")]


def all_rows(state: Mapping[str, NDArray[Any]]) -> RowChange:
    """A whole state as a change."""
    return {name: (np.arange(len(values), dtype=np.int32), values) for name, values in state.items()}


def prefixed(prefix: str, named: Mapping[str, T]) -> dict[str, T]:
    """The entries of a part of a state, under the names that the whole state uses."""
    return {prefix + name: value for name, value in named.items()}


def without_prefix(prefix: str, named: Mapping[str, T]) -> dict[str, T]:
    """The inverse of `prefixed`: the entries of a state with this prefix, without it.

    >>> without_prefix("item_", prefixed("item_", {"count": 3}) | {"user_count": 4})
    {'count': 3}
    """
    return {name.removeprefix(prefix): value for name, value in named.items() if name.startswith(prefix)}
