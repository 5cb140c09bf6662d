"""Columns of events: the form in which interactions are passed through felrec."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int32]
Times = NDArray[np.float64]
Weights = NDArray[np.float32]
RowChange = dict[str, tuple[Rows, NDArray[Any]]]  # new values of some rows of a state, by the name of their table
BEGINNING = -62_135_596_800.0  # the year 1, where the calendar of ISO 8601 begins: no event is earlier
WEIGHT_COLUMN = "event_weight"  # of a file: a name that means nothing else, since a log may have a column of kilograms
T = TypeVar("T")


class Against(NamedTuple):
    """What the events of a block speak against."""

    items: Rows  # (M,) distinct, ascending
    weights: Weights  # (M,) above 0


_NOTHING_AGAINST = Against(np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.float32))


@dataclass(frozen=True)
class Events:
    """Consecutive interactions in time order, as rows of the user and item vocabularies.

    A weight above 0 is how much an event counts, 0 makes it context only, and below 0 it speaks against the item.
    NaN is an event without a weight, which counts as with 1.

    >>> events = Events.of([0, 1, 0], [5, 5, 6], [10.0, 11.0, 12.0])
    >>> len(events), events[1:].items.tolist()
    (3, [5, 6])
    """

    users: Rows  # (B,)
    items: Rows  # (B,)
    times: Times  # (B,) seconds
    weights: Weights | None = None  # (B,); None: no event has one

    @classmethod
    def of(cls, users: object, items: object, times: object, weights: object = None) -> Events:
        """Build from anything array-like."""
        return cls(
            np.asarray(users, dtype=np.int32),
            np.asarray(items, dtype=np.int32),
            np.asarray(times, dtype=np.float64),
            None if weights is None else np.asarray(weights, dtype=np.float32),
        )

    @classmethod
    def joined(cls, parts: Sequence[Events]) -> Events:
        """Concatenate several; none are no events."""
        if not parts:
            return cls.of([], [], [])
        users, items, times = zip(*((part.users, part.items, part.times) for part in parts), strict=True)
        weights = joined_weights([(part.weights, len(part)) for part in parts])
        return cls(np.concatenate(users), np.concatenate(items), np.concatenate(times), weights)

    def __len__(self) -> int:
        return len(self.users)

    def __getitem__(self, window: slice | NDArray[np.integer]) -> Events:
        weights = None if self.weights is None else self.weights[window]
        return Events(self.users[window], self.items[window], self.times[window], weights)

    @property
    def counts(self) -> NDArray[np.bool_]:
        """Which events count (B,): neither context nor against their item."""
        return np.ones(len(self), dtype=bool) if self.weights is None else ~(self.weights <= 0)

    def shown(self) -> Events:
        """The events of histories: all that do not speak against their item."""
        if self.weights is None or not (self.weights < 0).any():
            return self
        return self[np.flatnonzero(~(self.weights < 0))]

    def against(self) -> Against:
        """The items that events speak against, and how much.

        >>> Events.of([0, 1, 2, 3], [7, 5, 7, 5], range(4), [-2, 1, -1, -1]).against()
        Against(items=array([5, 7], dtype=int32), weights=array([1., 3.], dtype=float32))
        """
        if self.weights is None or not (self.weights < 0).any():
            return _NOTHING_AGAINST
        items, which = np.unique(self.items[self.weights < 0], return_inverse=True)
        return Against(items, np.bincount(which, -self.weights[self.weights < 0]).astype(np.float32))

    def counting(self) -> Events:
        """The events that count, each as much as any other.

        >>> Events.of([0, 1, 2, 3], [5, 5, 5, 5], range(4), [2, 0, -1, np.nan]).counting()
        Events(users=array([0, 3], dtype=int32), items=array([5, 5], dtype=int32), times=array([0., 3.]), weights=None)
        """
        return self if self.weights is None else replace(self[np.flatnonzero(self.counts)], weights=None)

    def blocks(self, size: int) -> Iterator[Events]:
        """Consecutive blocks of at most `size` events."""
        for start in range(0, len(self), size):
            yield self[start : start + size]

    def not_before(self, clock: float) -> Events:
        """The same events with each time raised to at least `clock` and to every time before it.

        >>> Events.of([0, 1, 0], [5, 5, 6], [10.0, 12.0, 11.0]).not_before(11.0).times.tolist()
        [11.0, 12.0, 12.0]
        """
        return replace(self, times=np.maximum.accumulate(np.maximum(self.times, clock)))


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
    weights: Weights | None = field(default=None, repr=False)  # (B,) as in `Events`

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
        weights = joined_weights([(part.weights, len(part)) for part in parts])
        return cls(users, items, np.concatenate([part.times for part in parts]), weights=weights)

    def __len__(self) -> int:
        return len(self.users)

    def __getitem__(self, places: NDArray[np.int64]) -> EventColumns:
        at = places.tolist()
        numbers = places if self.numbers is None else self.numbers[places]
        weights = None if self.weights is None else self.weights[places]
        users, items = [self.users[n] for n in at], [self.items[n] for n in at]
        return EventColumns(users, items, self.times[places], numbers, weights)

    def number(self, place: int) -> int:
        """The number of a row in what the sender gave."""
        return place if self.numbers is None else int(self.numbers[place])

    def blocks(self, size: int) -> Iterator[EventColumns]:
        """Consecutive blocks of at most `size` events."""
        for window in (slice(start, start + size) for start in range(0, len(self), size)):
            weights = None if self.weights is None else self.weights[window]
            yield EventColumns(self.users[window], self.items[window], self.times[window], weights=weights)

    def in_time_order(self, now: float) -> EventColumns:
        """Sort by time, with `now` for events without a time; ties keep their order."""
        times = np.where(np.isnan(self.times), now, self.times)
        timed = replace(self, times=times)
        return timed if (times[1:] >= times[:-1]).all() else timed[np.argsort(times, kind="stable")]


def joined_weights(parts: Sequence[tuple[Weights | None, int]]) -> Weights | None:
    """Concatenate the weights of several parts, each with its number of events; None if there are none at all."""
    if all(weights is None for weights, _ in parts):
        return None
    return np.concatenate([np.full(count, np.nan, np.float32) if of is None else of for of, count in parts])


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
