"""The rows of the state in a file: pages, and saves since, which are folded into the pages from time to time.

A save is cheap because it writes its rows one after another; a page may need to be read and written for a single row.
A page may be written long before the saves it has are removed: all saves are applied to the pages that are read, so it
makes no difference whether a page has some of them already.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from felrec.data.tables.trimmed_values import TrimmedChange, between
from felrec.store.checksums import Report, of_row, to_bytes
from felrec.store.connection import Connection
from felrec.store.protocol import TableSpec
from felrec.store.row_blobs import (
    cells,
    decode_rows,
    encode_rows,
    merged,
    row_bytes,
    row_range,
)
from felrec.store.trimmed_rows import TrimmedRows

_AT_ONCE = 1 << 18  # bytes of saves that are merged at a time
_LARGE = 16 << 20  # bytes of a table that is worth trimming while it is read
_EXTENT = (
    "SELECT coalesce(sum(length(records)), 0), coalesce(min(first), 0), coalesce(max(last), -1) FROM saves"
    " WHERE row >= ? AND row < ? AND last >= 0"
)
_PUT_SAVE = (
    "INSERT INTO saves VALUES (?, ?, ?, ?, ?) ON CONFLICT (row) DO UPDATE"
    " SET first = excluded.first, last = excluded.last, records = excluded.records, crc = excluded.crc"
)
_NEWER = "SELECT row, records, crc FROM saves WHERE row >= ? AND row < ?"


def read_state(
    connection: Connection,
    tables: Sequence[TableSpec],
    rows: Sequence[int],
    saves: tuple[int, int],
    report: Report,
) -> dict[str, NDArray[np.generic]]:
    """All tables of the state, which have so many rows."""
    counts = {table.name: count for table, count in zip(tables, rows, strict=True)}
    state = {table.name: _empty(table, counts[table.name]) for table in tables}
    found = {name: np.zeros(count, dtype=np.bool_) for name, count in counts.items()}
    pages = _decoded(connection.execute("SELECT row, records, crc FROM pages ORDER BY row"), tables, "pages", report)
    newer = _decoded(connection.execute(f"{_NEWER} ORDER BY row", saves), tables, "saves", report)
    for change in chain(pages, newer):
        for name, (at, values) in change.items():
            if at.min() < 0 or at.max() >= counts[name]:
                report(f"state: rows of {name} do not fit their table")
                continue
            shape = state[name].shape[1:]
            state[name][at] = values.full(math.prod(shape)).reshape(-1, *shape)
            found[name][at] = True
    for name, there in found.items():
        if not there.all():
            report(f"state: {name} should have {len(there)} rows, but has {np.count_nonzero(there)}")
    return state


def _empty(table: TableSpec, rows: int) -> NDArray[np.generic]:
    """Rows of zeros, to be filled. Large ones are kept trimmed: a start needs little more memory than serving."""
    shape = rows, *table.shape
    if rows * row_bytes(table) < _LARGE or cells(table) == 1:
        return np.zeros(shape, dtype=table.dtype)
    return cast("NDArray[np.generic]", TrimmedRows(shape, table.dtype))  # an array as far as readers look at it


def put_save(connection: Connection, change: TrimmedChange, tables: Sequence[TableSpec], number: int) -> int:
    """Add a part of a save; returns its size."""
    records = encode_rows(change, tables)
    entry = (number, *row_range(change), records, of_row(number, records))
    connection.execute(_PUT_SAVE, entry)
    return len(records)


def folded_pages(
    connection: Connection, tables: Sequence[TableSpec], page: int, saves: tuple[int, int], report: Report
) -> Iterator[tuple[int, bytes]]:
    """The pages, of so many rows, that some saves change, by number, with the rows of these saves."""
    found: Any = connection.execute(_EXTENT, saves).fetchall()[0]
    size, first, last = map(int, found)
    pages = range(first // page, last // page + 1)
    step = max(1, len(pages) * _AT_ONCE // max(1, size))
    for start in pages[::step]:
        window = start * page, (start + step) * page
        rows = connection.execute(f"{_NEWER} AND first < ? AND last >= ? ORDER BY row", (*saves, *reversed(window)))
        parts = [between(change, *window) for change in _decoded(rows, tables, "saves", report)]
        yield from changed_pages(connection, merged(parts), tables, page, report)


def changed_pages(
    connection: Connection, change: TrimmedChange, tables: Sequence[TableSpec], page: int, report: Report
) -> Iterator[tuple[int, bytes]]:
    """The pages, of so many rows, that a change changes, by number, with its rows."""
    numbers = [np.zeros(0, dtype=np.int32), *(np.unique(rows // page) for rows, _ in change.values())]
    for number in np.unique(np.concatenate(numbers)).tolist():
        part = between(change, number * page, (number + 1) * page)
        rows = connection.execute("SELECT row, records, crc FROM pages WHERE row = ?", (number,))
        yield number, encode_rows(merged([*_decoded(rows, tables, "pages", report), part]), tables)


def _decoded(rows: Any, tables: Sequence[TableSpec], name: str, report: Report) -> Iterator[TrimmedChange]:
    for number, records, crc in rows:
        content = to_bytes(records)
        if of_row(number, content) == crc:
            yield decode_rows(content, tables)
        else:
            report(f"{name}: row {number} is damaged")
