"""A table with one row per pair of an owner and something else: what a user took, what was taken together."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from felrec.data.events import Rows

_KEY = "key"
_OTHER = 0xFFFFFFFF  # the low half of a key; the high half is the owner
_MERGE_SHARE = 0.125  # of the large part, so that the cost of merging stays in proportion
_MERGE_LEAST = 4_096


class Owned(NamedTuple):
    """The pairs of several owners, one entry each."""

    asked: NDArray[np.int64]  # (M,) which of the owners that were asked for
    others: Rows  # (M,)
    rows: NDArray[np.int64]  # (M,) rows of the table


class Pairs:
    """Keeps columns of values for pairs, and finds all pairs of an owner.

    The rows are a large part and a small one, both sorted by pair. New pairs go into the small part, so that taking in
    a few does not move all the others. A row number holds until the next `add`.

    >>> pairs = Pairs(count=np.int64)
    >>> rows = pairs.add(np.array([7, 7, 3]), np.array([1, 2, 1]))
    >>> pairs["count"][rows] += 1
    >>> found = pairs.of(np.array([3, 7]))
    >>> found.asked.tolist(), found.others.tolist(), pairs["count"][found.rows].tolist()
    ([0, 1, 1], [1, 1, 2], [1, 1, 1])
    """

    def __init__(self, **columns: DTypeLike) -> None:
        self.kinds: dict[str, DTypeLike] = {_KEY: np.int64, **columns}
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self._large, self._length = 0, 0  # rows of the large part, rows of both
        self._columns: dict[str, NDArray[Any]] = {name: np.zeros(0, dtype=kind) for name, kind in self.kinds.items()}

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, column: str) -> NDArray[Any]:
        """A column by row, to be read and written until the next `add`."""
        return self._columns[column][: self._length]

    def add(self, owners: NDArray[np.integer], others: NDArray[np.integer]) -> NDArray[np.int64]:
        """Rows (M,) of pairs; those that are new have zeros in every column."""
        if self._length - self._large > max(_MERGE_LEAST, _MERGE_SHARE * self._large):
            self._merge()
        keys, which = np.unique(owners.astype(np.int64) << 32 | others, return_inverse=True)  # ascending: found faster
        (_, large), (begin, small) = self._parts()
        rows = _find(keys, large)
        rest = rows < 0
        new = keys[rest][_find(keys[rest], small) < 0]
        if len(new):
            self._insert(new)
        rows[rest] = begin + _find(keys[rest], self[_KEY][begin:])
        return rows[which]

    def of(self, owners: NDArray[np.integer]) -> Owned:
        """All pairs of each owner."""
        low = owners.astype(np.int64) << 32
        found = []
        for start, keys in self._parts():
            at, asked = spread(np.searchsorted(keys, low), np.searchsorted(keys, low + _OTHER, side="right"))
            found.append(Owned(asked, (keys[at] & _OTHER).astype(np.int32), start + at))
        return Owned(*(np.concatenate(parts) for parts in zip(*found, strict=True)))

    def state(self) -> dict[str, NDArray[np.generic]]:
        """A copy of the pairs and their values, sorted: equal for equal contents."""
        order = np.argsort(self[_KEY], kind="stable")
        return {name: self[name][order] for name in self.kinds}

    def load_state(self, state: dict[str, NDArray[np.generic]]) -> None:
        """Put back what `state` returned."""
        self._columns = {name: np.array(state[name], dtype=kind) for name, kind in self.kinds.items()}
        self._large = self._length = len(state[_KEY])

    def _parts(self) -> tuple[tuple[int, NDArray[np.int64]], ...]:
        """Where each part begins, and its sorted keys."""
        keys = self[_KEY]
        return (0, keys[: self._large]), (self._large, keys[self._large :])

    def _insert(self, keys: NDArray[np.int64]) -> None:
        """Make rows of zeros for new pairs, in the small part."""
        begin, end, length = self._large, self._length, self._length + len(keys)
        at = np.searchsorted(self[_KEY][begin:], keys)
        for name, column in self._columns.items():
            small = np.insert(column[begin:end], at, keys if name == _KEY else 0)
            if length > len(column):  # by doubling, so that growth stays cheap
                self._columns[name] = column = np.resize(column, max(length, 2 * len(column)))
            column[begin:length] = small
        self._length = length

    def _merge(self) -> None:
        """Make one sorted part of the two."""
        order = np.argsort(self[_KEY], kind="stable")  # which is fast on two sorted runs
        for name in self._columns:
            self[name][:] = self[name][order]
        self._large = self._length


def _find(keys: NDArray[np.int64], known: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each key stands among the known ones, which are sorted; -1 if it does not."""
    if not len(known):
        return np.full(len(keys), -1, dtype=np.int64)
    at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    return np.where(known[at] == keys, at, -1)


def spread(starts: NDArray[np.int64], stops: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All places of several runs, and which run each belongs to.

    >>> [column.tolist() for column in spread(np.array([5, 0, 2]), np.array([7, 0, 3]))]
    [[5, 6, 2], [0, 0, 2]]
    """
    lengths = stops - starts
    run = np.repeat(np.arange(len(lengths)), lengths)
    return np.arange(lengths.sum()) + np.repeat(starts - (np.cumsum(lengths) - lengths), lengths), run
