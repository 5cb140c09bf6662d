"""Write rows with their checksums. The caller has begun a transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import apsw

from felrec.store.checksums import of_name, of_row, to_json
from felrec.store.protocol import StoredReceipt
from felrec.store.reading import Counters, answer_crc


def put_meta(connection: apsw.Connection, name: str, value: str) -> None:
    """Set an entry of the table `meta`."""
    row = (name, value, of_name(name, value))
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?, ?)", row)


def put_notes(connection: apsw.Connection, notes: Mapping[str, str]) -> None:
    """Set notes of the engine."""
    for name, value in notes.items():
        put_meta(connection, f"note:{name}", value)


def add_ids(connection: apsw.Connection, table: str, first: int, ids: Sequence[str | None]) -> None:
    """Add ids from row `first` on; None is the row of an erased id."""
    rows = [(row, name, of_row(row, (name or "").encode())) for row, name in enumerate(ids, first)]
    connection.executemany(f"INSERT INTO {table} VALUES (?, ?, ?)", rows)


def forget_ids(connection: apsw.Connection, table: str, rows: Sequence[int]) -> None:
    """Erase the ids of rows."""
    erased = [(of_row(row, b""), row) for row in rows]
    connection.executemany(f"UPDATE {table} SET id = NULL, crc = ? WHERE row = ?", erased)


def put_records(connection: apsw.Connection, table: str, row: int, content: bytes) -> None:
    """Set a block of the journal, a part of the base or a page of the state."""
    connection.execute(f"INSERT OR REPLACE INTO {table} VALUES (?, ?, ?)", (row, content, of_row(row, content)))


def put_answers(connection: apsw.Connection, answers: Sequence[StoredReceipt], now: float) -> None:
    """Remove expired answers and add new ones."""
    connection.execute("DELETE FROM answers WHERE expires < ?", (now,))
    connection.executemany(
        "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?)", [(*answer, answer_crc(answer)) for answer in answers]
    )


def renew_answers(connection: apsw.Connection, expires: float) -> None:
    """Let all answers expire at the same moment. In format 1 they expire by a clock that may jump."""

    def crc(*answer: Any) -> int:
        return answer_crc(StoredReceipt._make((*answer, expires)))

    connection.create_scalar_function("answer_crc", crc, 3)
    connection.execute("UPDATE answers SET expires = ?, crc = answer_crc(key, body, text)", (expires,))
    connection.create_scalar_function("answer_crc", None, 3)


def put_attributes(
    connection: apsw.Connection, attributes: Mapping[str, Mapping[str, Any]], counters: Counters
) -> None:
    """Set the attributes of items, and count new ones."""
    for item, kept in attributes.items():
        known = connection.execute("SELECT 1 FROM attributes WHERE id = ?", (item,)).fetchall()
        counters.attributes += not known
        value = to_json(kept)
        connection.execute("INSERT OR REPLACE INTO attributes VALUES (?, ?, ?)", (item, value, of_name(item, value)))


def remove_attributes(connection: apsw.Connection, items: Sequence[str], counters: Counters) -> None:
    """Remove the attributes of items, as far as they have any, and count them."""
    for item in items:
        connection.execute("DELETE FROM attributes WHERE id = ?", (item,))
        counters.attributes -= connection.changes()
