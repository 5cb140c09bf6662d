"""The state in files of format 1 and 2: one entry for each row of each table.

An entry is row r of table t, numbered r * (number of tables) + t.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from felrec.store.checksums import Report, of_row, to_bytes
from felrec.store.connection import Connection
from felrec.store.protocol import TableSpec

_CHUNK = 1 << 17  # entries read at a time


def read_single_rows(
    connection: Connection, tables: list[TableSpec], rows: list[int], _saves: tuple[int, int], report: Report
) -> dict[str, NDArray[np.generic]]:
    """The tables of the state; read in chunks, to avoid a second copy in memory."""
    kinds = [np.dtype(table.dtype) for table in tables]
    state = [
        np.zeros((count, *table.shape), dtype=kind) for count, table, kind in zip(rows, tables, kinds, strict=True)
    ]
    found = [0] * len(tables)
    for numbers, values in _state_chunks(connection, report):
        all_numbers = np.array(numbers, dtype=np.int64)
        for t, table in enumerate(tables):
            places = np.flatnonzero(all_numbers % len(tables) == t)
            at = all_numbers[places] // len(tables)
            whole = b"".join([values[place] for place in places.tolist()])
            size = kinds[t].itemsize * int(np.prod(table.shape))
            if len(whole) != size * len(at) or (len(at) and at[-1] >= rows[t]):
                report(f"state: rows of {table.name} do not fit their table")
                continue
            state[t][at] = np.frombuffer(whole, dtype=kinds[t]).reshape(-1, *table.shape)
            found[t] += len(at)
    for table, count, expected in zip(tables, found, rows, strict=True):
        if count != expected:
            report(f"state: {table.name} should have {expected} rows, but has {count}")
    return {table.name: values for table, values in zip(tables, state, strict=True)}


def _state_chunks(connection: Connection, report: Report) -> Iterator[tuple[list[int], list[bytes]]]:
    newest: Any = connection.execute("SELECT coalesce(max(row), -1) FROM state").fetchall()[0][0]
    for start in range(0, int(newest) + 1, _CHUNK):
        rows: list[Any] = connection.execute(
            "SELECT row, value, crc FROM state WHERE row >= ? AND row < ? ORDER BY row", (start, start + _CHUNK)
        ).fetchall()
        numbers, values = [row for row, _, _ in rows], [to_bytes(value) for _, value, _ in rows]
        if [of_row(row, value) for row, value in zip(numbers, values, strict=True)] != [crc for _, _, crc in rows]:
            report("state: a row is damaged")
        yield numbers, values
