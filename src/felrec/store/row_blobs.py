"""Many rows of the state in one blob: a page of the state, or a part of what was saved since.

A blob has the number of rows of each table, then for each table the numbers of its rows and their trimmed values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from felrec.data.tables.trimmed_values import TrimmedChange, TrimmedValues
from felrec.store.protocol import TableSpec

_NUMBER = np.dtype("<i4")
_TRIMMED = -1  # begins a blob; one of format 5 or before begins with a number of rows, and has every cell of them
_PAGE_BYTES, _PAGE_BYTES_OF_FORMAT_5, _MOST_ROWS = 524_288, 32_768, 1_024  # of rows with every cell


def encode_rows(change: TrimmedChange, tables: Sequence[TableSpec]) -> bytes:
    """Rows of several tables as one blob.

    >>> from felrec.data.tables.trimmed_values import trimmed
    >>> tables = [TableSpec("a", "<f4", (2,)), TableSpec("b", "<i8", ())]
    >>> blob = encode_rows(trimmed({"b": (np.array([7, 3]), np.array([70, 30]))}), tables)
    >>> {name: (rows.tolist(), values.full(1).tolist()) for name, (rows, values) in decode_rows(blob, tables).items()}
    {'b': ([3, 7], [[30], [70]])}
    """
    counts = [len(change[table.name][0]) if table.name in change else 0 for table in tables]
    parts = [np.array([_TRIMMED, *counts], dtype=_NUMBER)]
    for table in tables:
        if table.name in change:
            rows, values = change[table.name]
            parts += [rows.astype(_NUMBER, copy=False), values.last.astype(table.dtype, copy=False)]
            if cells(table) > 1:
                parts += [values.used.astype(_NUMBER, copy=False), values.cells.astype(table.dtype, copy=False)]
    return b"".join([part.tobytes() for part in parts])


def decode_rows(blob: bytes, tables: Sequence[TableSpec]) -> TrimmedChange:
    """The rows of a blob, as views of it; ValueError if it cannot be one."""
    of_format_5 = np.frombuffer(blob, _NUMBER, 1)[0] != _TRIMMED
    reader = _Reader(blob, 0 if of_format_5 else _NUMBER.itemsize)
    counts = reader.take(_NUMBER, len(tables))
    if (counts < 0).any():
        raise ValueError("a blob of rows is damaged")
    change = TrimmedChange()
    for table, count in zip(tables, counts.tolist(), strict=True):
        if count:
            rows = reader.take(_NUMBER, count)
            change[table.name] = rows, (reader.take_full if of_format_5 else reader.take_trimmed)(table, count)
    if reader.at != len(blob):
        raise ValueError("a blob of rows has the wrong length")
    return change


class _Reader:
    """Takes one array after another from a blob."""

    def __init__(self, blob: bytes, at: int) -> None:
        self.blob, self.at = blob, at

    def take(self, dtype: np.dtype[Any], count: int) -> NDArray[Any]:
        taken = np.frombuffer(self.blob, dtype, count, self.at)
        self.at += taken.nbytes
        return taken

    def take_trimmed(self, table: TableSpec, count: int) -> TrimmedValues:
        dtype = np.dtype(table.dtype)
        last = self.take(dtype, count)
        if cells(table) == 1:
            return TrimmedValues(last, np.zeros(count, dtype=_NUMBER), last[:0])
        used = self.take(_NUMBER, count)
        if used.min() < 0 or used.max() > cells(table):
            raise ValueError("a blob of rows is damaged")
        return TrimmedValues(last, used, self.take(dtype, int(used.sum())))

    def take_full(self, table: TableSpec, count: int) -> TrimmedValues:
        return TrimmedValues.of(self.take(np.dtype(table.dtype), count * cells(table)).reshape(count, -1))


def merged(changes: Sequence[TrimmedChange]) -> TrimmedChange:
    """Successive changes as one: the last value of each row wins.

    >>> from felrec.data.tables.trimmed_values import trimmed
    >>> first, second = {"a": (np.array([1, 4]), np.array([10, 40]))}, {"a": (np.array([4, 2]), np.array([41, 20]))}
    >>> rows, values = merged([trimmed(first), trimmed(second)])["a"]
    >>> rows.tolist(), values.last.tolist()
    ([1, 2, 4], [10, 20, 41])
    """
    together = TrimmedChange()
    for name in dict.fromkeys(name for change in changes for name in change):
        parts = [change[name] for change in changes if name in change]
        if len(parts) == 1:
            together[name] = parts[0]
            continue
        rows = np.concatenate([rows for rows, _ in parts])
        kept, from_the_end = np.unique(rows[::-1], return_index=True)
        values = TrimmedValues.joined([values for _, values in parts])
        together[name] = kept, values.picked(len(rows) - 1 - from_the_end)
    return together


def page_rows(tables: Sequence[TableSpec], *, of_format_5: bool = False) -> int:
    """Rows of each table in a page of the state of a new store; it keeps them for its life (`Counters.page`)."""
    most = _PAGE_BYTES_OF_FORMAT_5 if of_format_5 else _PAGE_BYTES
    return max(1, min(_MOST_ROWS, most // max(1, sum(map(row_bytes, tables)))))


def row_bytes(table: TableSpec) -> int:
    """The size of a row with every cell."""
    return _NUMBER.itemsize + np.dtype(table.dtype).itemsize * cells(table)


def cells(table: TableSpec) -> int:
    """Numbers in one row."""
    return math.prod(table.shape)


def row_range(change: TrimmedChange) -> tuple[int, int]:
    """The first row of a change, and the last; -1 as the last of an empty one."""
    every = [rows for rows, _ in change.values() if len(rows)]
    return min((int(rows[0]) for rows in every), default=0), max((int(rows[-1]) for rows in every), default=-1)
