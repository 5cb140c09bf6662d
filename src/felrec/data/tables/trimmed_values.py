"""Rows of a table without the value that repeats at their end: most rows are lists with free slots there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from felrec.data.events import RowChange, Rows
from felrec.data.tables.table import ReadableRows

_AT_ONCE = 4_096  # rows


class TrimmedValues(NamedTuple):
    """Rows (B, W): the last cell of each, and the cells up to the last that differs from it.

    >>> rows = TrimmedValues.of(np.array([[5, 7, 0, 0], [6, 6, 6, 6], [1, 2, 3, 4]]))
    >>> [column.tolist() for column in rows[1:]]
    [[2, 0, 3], [5, 7, 1, 2, 3]]
    >>> rows.picked(np.array([2, 1])).full(4).tolist()
    [[1, 2, 3, 4], [6, 6, 6, 6]]
    """

    last: NDArray[Any]  # (B,)
    used: NDArray[np.int32]  # (B,) cells of each row that are kept
    cells: NDArray[Any]  # those of all rows, one row after another

    @classmethod
    def of(cls, values: NDArray[Any]) -> Self:
        """Rows (B, ...) of an array."""
        values = values.reshape(len(values), math.prod(values.shape[1:]))
        bits = values.view(f"u{values.itemsize}")  # bits, because no NaN equals another
        used = count_used(bits != bits[:, -1:])
        return cls(values[:, -1].copy(), used, values[in_use(used, values.shape[1])])

    def full(self, width: int) -> NDArray[Any]:
        """The array (B, W)."""
        values = np.repeat(self.last[:, None], width, axis=1)
        values[in_use(self.used, width)] = self.cells
        return values

    def picked(self, rows: NDArray[np.integer]) -> Self:
        """Some of the rows."""
        used, starts = self.used[rows], np.cumsum(self.used, dtype=np.int64) - self.used
        return type(self)(self.last[rows], used, self.cells[ranges(starts[rows], used)])

    def between(self, first: int, end: int) -> Self:
        """The rows from `first` to before `end`."""
        start = int(self.used[:first].sum())
        stop = start + int(self.used[first:end].sum())
        return type(self)(self.last[first:end], self.used[first:end], self.cells[start:stop])

    @classmethod
    def joined(cls, parts: Sequence[TrimmedValues]) -> Self:
        """Several ones, one after another."""
        return cls(*(np.concatenate(column) for column in zip(*parts, strict=True)))


TrimmedChange = dict[str, tuple[Rows, TrimmedValues]]  # rows of each table in ascending order


@runtime_checkable
class TrimmedTable(Protocol):
    """Rows that are kept trimmed."""

    def trimmed(self, rows: NDArray[np.integer], /) -> TrimmedValues:
        """Some of the rows."""
        ...


def trimmed(change: RowChange) -> TrimmedChange:
    """New values of some rows of a state, trimmed a few at a time: a copy of all may not fit into memory."""
    found = TrimmedChange()
    for name, (rows, values) in change.items():
        order = np.argsort(rows, kind="stable")
        pieces = np.array_split(order, len(order) // _AT_ONCE + 1)
        found[name] = rows[order], TrimmedValues.joined([TrimmedValues.of(values[piece]) for piece in pieces])
    return found


def between(change: TrimmedChange, first: int, end: int) -> TrimmedChange:
    """The rows from `first` to before `end`."""
    part = TrimmedChange()
    for name, (rows, values) in change.items():
        start, stop = np.searchsorted(rows, (first, end)).tolist()
        if stop > start:
            part[name] = rows[start:stop], values.between(start, stop)
    return part


def trimmed_rows(table: ReadableRows, rows: NDArray[np.integer]) -> TrimmedValues:
    """Some rows of a table."""
    if isinstance(table, TrimmedTable):
        return table.trimmed(rows)
    return TrimmedValues.of(table[rows])


def ranges(starts: NDArray[np.int64], lengths: NDArray[np.int32]) -> NDArray[np.int64]:
    """The numbers of ranges, one range after another.

    >>> ranges(np.array([40, 8]), np.array([3, 2])).tolist()
    [40, 41, 42, 8, 9]
    """
    ends = np.cumsum(lengths, dtype=np.int64)
    numbers: NDArray[np.int64] = np.repeat(starts - ends + lengths, lengths)
    return numbers + np.arange(len(numbers))


def count_used(differs: NDArray[np.bool_]) -> NDArray[np.int32]:
    """The cells (B,) of each row (B, W) up to the last True.

    >>> count_used(np.array([[True, False, True, False], [False, False, False, False]])).tolist()
    [3, 0]
    """
    backwards = differs[:, ::-1]
    return np.where(backwards.any(axis=1), differs.shape[1] - backwards.argmax(axis=1), 0).astype(np.int32)


def in_use(used: NDArray[np.int32], width: int) -> NDArray[np.bool_]:
    """Which cells (B, width) are among the used ones at the beginning of their row."""
    mask: NDArray[np.bool_] = np.arange(width) < used[:, None]
    return mask
