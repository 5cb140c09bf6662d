"""Write rows with their checksums. The caller has begun a transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from felrec.store.checksums import of_name, of_row, to_json
from felrec.store.connection import Connection
from felrec.store.protocol import StoredReceipt
from felrec.store.reading import Counters, answer_crc

_PUT = (
    "INSERT INTO {table} VALUES (?, ?, ?)"
    " ON CONFLICT ({key}) DO UPDATE SET {value} = excluded.{value}, crc = excluded.crc"
)
_PUT_ANSWER = (
    "INSERT INTO answers VALUES (?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE"
    " SET body = excluded.body, text = excluded.text, expires = excluded.expires, crc = excluded.crc"
)


def put_meta(connection: Connection, name: str, value: str) -> None:
    """Set an entry of the table `meta`."""
    connection.execute(_PUT.format(table="meta", key="name", value="value"), (name, value, of_name(name, value)))


def put_notes(connection: Connection, notes: Mapping[str, str]) -> None:
    """Set notes of the engine."""
    for name, value in notes.items():
        put_meta(connection, f"note:{name}", value)


def replace_note(connection: Connection, name: str, value: str, before: str | None) -> bool:
    """Set a note if it has the value before, or if there is none and None is given. Returns whether it was set."""
    row = (value, of_name(f"note:{name}", value), f"note:{name}")
    if before is None:
        statement = "INSERT INTO meta (value, crc, name) VALUES (?, ?, ?) ON CONFLICT (name) DO NOTHING RETURNING name"
        return bool(connection.execute(statement, row).fetchall())
    statement = "UPDATE meta SET value = ?, crc = ? WHERE name = ? AND value = ? RETURNING name"
    return bool(connection.execute(statement, (*row, before)).fetchall())


def add_ids(connection: Connection, table: str, first: int, ids: Sequence[str | None]) -> None:
    """Add ids from row `first` on; None is the row of an erased id."""
    rows = [(row, name, of_row(row, (name or "").encode())) for row, name in enumerate(ids, first)]
    connection.executemany(f"INSERT INTO {table} VALUES (?, ?, ?)", rows)


def forget_ids(connection: Connection, table: str, rows: Sequence[int]) -> None:
    """Erase the ids of rows."""
    erased = [(of_row(row, b""), row) for row in rows]
    connection.executemany(f"UPDATE {table} SET id = NULL, crc = ? WHERE row = ?", erased)


def put_records(connection: Connection, table: str, row: int, content: bytes) -> None:
    """Set a block of the journal, a part of the base or a page of the state."""
    connection.execute(_PUT.format(table=table, key="row", value="records"), (row, content, of_row(row, content)))


def put_answers(connection: Connection, answers: Sequence[StoredReceipt], now: float) -> None:
    """Remove expired answers and add new ones."""
    connection.execute("DELETE FROM answers WHERE expires < ?", (now,))
    connection.executemany(_PUT_ANSWER, [(*answer, answer_crc(answer)) for answer in answers])


def put_attributes(connection: Connection, attributes: Mapping[str, Mapping[str, Any]], counters: Counters) -> None:
    """Set the attributes of items, and count new ones."""
    for item, kept in attributes.items():
        known = connection.execute("SELECT 1 FROM attributes WHERE id = ?", (item,)).fetchall()
        counters.attributes += not known
        row = (item, value := to_json(kept), of_name(item, value))
        connection.execute(_PUT.format(table="attributes", key="id", value="value"), row)


def remove_attributes(connection: Connection, items: Sequence[str], counters: Counters) -> None:
    """Remove the attributes of items, as far as they have any, and count them."""
    for item in items:
        removed = connection.execute("DELETE FROM attributes WHERE id = ? RETURNING 1", (item,)).fetchall()
        counters.attributes -= len(removed)
