"""Counts of (owner, other) pairs, such as a user's items, or items with a common user."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from felrec.data.events import RowChange, Rows
from felrec.data.pending import spread
from felrec.data.tables.growing import GrowingArray
from felrec.data.tables.table import TableState

Keys = NDArray[np.int64]  # the high half is the owner, the low half the other

_OTHER = 0xFFFFFFFF
_MERGE_SHARE = 0.125  # of the large index, so that the cost of merging stays proportional
_MERGE_LEAST = 4_096


class Owned(NamedTuple):
    """The pairs of several owners, one entry per pair."""

    asked: NDArray[np.int64]  # (M,) index of the owner in the request
    others: Rows  # (M,)
    rows: NDArray[np.integer]  # (M,) rows of the table


class Index(NamedTuple):
    """The table rows of pairs, sorted by pair."""

    keys: Keys
    rows: NDArray[np.integer]

    def find(self, keys: Keys) -> NDArray[np.int64]:
        """Rows of pairs, -1 for unknown pairs."""
        if not len(self.keys):
            return np.full(len(keys), -1, dtype=np.int64)
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[at] == keys, self.rows[at], -1)

    def insert(self, keys: Keys, rows: Rows) -> Index:
        """The index with these pairs added."""
        at = np.searchsorted(self.keys, keys)
        return Index(np.insert(self.keys, at, keys), np.insert(self.rows, at, rows))


class PairCounts:
    """The number of meetings of each pair; `marks` are further columns that hold values of the latest meeting.

    Rows are in order of arrival and are found by a large and a small index. New pairs go into the small one, so that
    adding a few does not move all others.

    >>> pairs = PairCounts()
    >>> pairs.add(np.array([7, 7, 3, 7]), np.array([1, 2, 1, 1]))
    >>> found = pairs.of(np.array([3, 7]))
    >>> found.asked.tolist(), found.others.tolist(), pairs["count"][found.rows].tolist()
    ([0, 1, 1], [1, 1, 2], [1, 2, 1])
    """

    def __init__(self, **marks: DTypeLike) -> None:
        kinds: dict[str, DTypeLike] = {"count": np.int32, **marks}
        self._columns = {name: GrowingArray(kind) for name, kind in kinds.items()}
        self.clear()

    def clear(self) -> None:
        """Remove all pairs."""
        for column in self._columns.values():
            column.clear()
        self._large = self._small = Index(*np.zeros((2, 0), dtype=np.int64))

    def __len__(self) -> int:
        return len(self._columns["count"])

    def __getitem__(self, column: str) -> NDArray[Any]:
        """A column by row, as a view."""
        return self._columns[column].values

    def add(self, owners: NDArray[np.integer], others: NDArray[np.integer], **marks: NDArray[Any]) -> None:
        """Count meetings in time order."""
        self.apply_change(self.change(owners, others, **marks))

    def change(self, owners: NDArray[np.integer], others: NDArray[np.integer], **marks: NDArray[Any]) -> RowChange:
        """The rows of these pairs after counting the meetings; a new pair gets the next row."""
        meetings = owners.astype(np.int64) << 32 | others
        keys, from_the_end, times = np.unique(meetings[::-1], return_index=True, return_counts=True)
        latest = len(meetings) - 1 - from_the_end
        found = self._large.find(keys)
        rest = found < 0
        found[rest] = self._small.find(keys[rest])
        new = found < 0
        found[new] = len(self) + np.arange(new.sum())
        rows = found.astype(np.int32)
        counts = self._columns["count"].read(rows) + times
        return {"key": (rows, keys), "count": (rows, counts), **{m: (rows, marks[m][latest]) for m in marks}}

    def apply_change(self, change: RowChange) -> None:
        """Write what `change` returned."""
        rows, keys = change["key"]
        new = rows >= len(self)
        self._small = self._small.insert(keys[new], rows[new])
        if len(self._small.keys) > max(_MERGE_LEAST, _MERGE_SHARE * len(self._large.keys)):
            self._large, self._small = self._merged(), Index(*np.zeros((2, 0), dtype=np.int64))
        for name, column in self._columns.items():
            column.write(*change[name])

    def of(self, owners: NDArray[np.integer]) -> Owned:
        """All pairs of each owner."""
        low = owners.astype(np.int64) << 32
        found = []
        for keys, rows in (self._large, self._small):
            at, asked = spread(np.searchsorted(keys, low), np.searchsorted(keys, low + _OTHER, side="right"))
            found.append(Owned(asked, (keys[at] & _OTHER).astype(np.int32), rows[at]))
        return Owned(*(np.concatenate(parts) for parts in zip(*found, strict=True)))

    def state(self) -> TableState:
        """A copy of the pairs and their values, sorted by pair, so that equal contents give equal states."""
        keys, rows = self._merged()
        return {"key": keys, **{name: column.values[rows] for name, column in self._columns.items()}}

    def load_state(self, state: TableState) -> None:
        """Replace all pairs by what `state` returned."""
        self.clear()
        self._large = Index(np.array(state["key"], dtype=np.int64), np.arange(len(state["key"])))
        for name, column in self._columns.items():
            column.load(state[name])

    def _merged(self) -> Index:
        """One index of all pairs."""
        keys = np.concatenate([self._large.keys, self._small.keys])
        order = np.argsort(keys, kind="stable")  # fast on two sorted runs
        return Index(keys[order], np.concatenate([self._large.rows, self._small.rows])[order])
