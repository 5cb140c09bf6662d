"""Many rows of the state in one blob: a page of the state, or a part of what was saved since.

A blob has the number of rows of each table, then for each table the numbers of its rows and their values.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from felrec.data.events import RowChange
from felrec.store.protocol import TableSpec

_NUMBER = np.dtype("<i4")
_PAGE_BYTES, _MOST_ROWS = 32_768, 1_024


def encode_rows(change: RowChange, tables: Sequence[TableSpec]) -> bytes:
    """Rows of several tables as one blob.

    >>> tables = [TableSpec("a", "<f4", (2,)), TableSpec("b", "<i8", ())]
    >>> blob = encode_rows({"b": (np.array([3, 7]), np.array([30, 70]))}, tables)
    >>> {name: (rows.tolist(), values.tolist()) for name, (rows, values) in decode_rows(blob, tables).items()}
    {'b': ([3, 7], [30, 70])}
    """
    counts = np.zeros(len(tables), dtype=_NUMBER)
    parts = [b""]
    for t, table in enumerate(tables):
        if table.name in change:
            rows, values = change[table.name]
            counts[t] = len(rows)
            parts += [rows.astype(_NUMBER, copy=False).tobytes(), values.astype(table.dtype, copy=False).tobytes()]
    parts[0] = counts.tobytes()
    return b"".join(parts)


def decode_rows(blob: bytes, tables: Sequence[TableSpec]) -> RowChange:
    """The rows of a blob, as views of it; ValueError if it cannot be one."""
    counts = np.frombuffer(blob, _NUMBER, len(tables))
    change, at = RowChange(), counts.nbytes
    if (counts < 0).any():
        raise ValueError("a blob of rows is damaged")
    for table, count in zip(tables, counts.tolist(), strict=True):
        if count:
            rows = np.frombuffer(blob, _NUMBER, count, at)
            at += rows.nbytes
            values = np.frombuffer(blob, table.dtype, count * cells(table), at).reshape(count, *table.shape)
            at += values.nbytes
            change[table.name] = rows, values
    if at != len(blob):
        raise ValueError("a blob of rows has the wrong length")
    return change


def merged(changes: Sequence[RowChange]) -> RowChange:
    """Successive changes as one, with rows in ascending order: the last value of each row wins.

    >>> first, second = (np.array([1, 4]), np.array([10, 40])), (np.array([4, 2]), np.array([41, 20]))
    >>> rows, values = merged([{"a": first}, {"a": second}])["a"]
    >>> rows.tolist(), values.tolist()
    ([1, 2, 4], [10, 20, 41])
    """
    together = RowChange()
    for name in dict.fromkeys(name for change in changes for name in change):
        parts = [change[name] for change in changes if name in change]
        rows = np.concatenate([rows for rows, _ in parts])
        kept, from_the_end = np.unique(rows[::-1], return_index=True)
        together[name] = kept, np.concatenate([values for _, values in parts])[len(rows) - 1 - from_the_end]
    return together


def between(change: RowChange, first: int, end: int) -> RowChange:
    """The rows from `first` to before `end` of a change whose rows are in ascending order."""
    part = RowChange()
    for name, (rows, values) in change.items():
        start, stop = np.searchsorted(rows, (first, end)).tolist()
        if stop > start:
            part[name] = rows[start:stop], values[start:stop]
    return part


def in_order(change: RowChange) -> RowChange:
    """A change with the rows of each table in ascending order."""
    ordered = RowChange()
    for name, (rows, values) in change.items():
        order = np.argsort(rows, kind="stable")
        ordered[name] = rows[order], values[order]
    return ordered


def page_rows(tables: Sequence[TableSpec]) -> int:
    """Rows of each table in a page of the state: the same for the life of a store, whose tables never change."""
    return max(1, min(_MOST_ROWS, _PAGE_BYTES // max(1, sum(map(row_bytes, tables)))))


def state_bytes(rows: Sequence[int], tables: Sequence[TableSpec]) -> int:
    """The size of a state with so many rows in each table."""
    return sum(count * row_bytes(table) for count, table in zip(rows, tables, strict=True))


def row_bytes(table: TableSpec) -> int:
    """The size of a row in a blob."""
    return _NUMBER.itemsize + np.dtype(table.dtype).itemsize * cells(table)


def cells(table: TableSpec) -> int:
    """Numbers in one row."""
    return int(np.prod(table.shape, dtype=np.int64))


def row_range(change: RowChange) -> tuple[int, int]:
    """The first row of a change, and the last; -1 as the last of an empty one."""
    every: list[NDArray[np.int32]] = [rows for rows, _ in change.values() if len(rows)]
    return min((int(rows.min()) for rows in every), default=0), max((int(rows.max()) for rows in every), default=-1)
