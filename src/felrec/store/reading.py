"""Read a whole store file and verify every checksum and count."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import apsw
import numpy as np
from numpy.typing import NDArray

from felrec.data.seen import PAIR
from felrec.store.checksums import of_name, of_row
from felrec.store.protocol import ERASING, Contents, Identity, StoredReceipt, TableSpec
from felrec.store.records import EVENT, decode_events
from felrec.store.unfinished import without_unfinished

Report = Callable[[str], None]  # receives a problem; raises, or records it so that checking continues
_CHUNK = 1 << 17  # rows of the state read at a time


@dataclass
class Counters:
    """Row counts, so that missing rows are detected."""

    users: int = 0
    items: int = 0
    attributes: int = 0
    parts: int = 0
    blocks: int = 0
    events: int = 0
    applied: int = 0
    state: list[int] | None = None  # rows of each table
    clock: float = 0.0  # of the base
    changes: int = 0  # commits and erasures ever
    journalled: int = 0  # events ever, including those of users who were erased since
    seconds: float = 0.0  # that the store has been open, ever; see Store.seconds


def read_meta(connection: apsw.Connection, report: Report) -> dict[str, str]:
    """All entries of the table `meta` by name."""
    entries = {}
    for name, value, crc in connection.execute("SELECT name, value, crc FROM meta"):
        if of_name(str(name), str(value)) != crc:
            report(f"meta: the entry {str(name)[:40]!r} is damaged")
        entries[str(name)] = str(value)
    return entries


def read_counters(meta: dict[str, str]) -> Counters:
    """The stored row counts."""
    return Counters(**json.loads(meta["counters"]))


def read_identity(meta: dict[str, str]) -> Identity:
    """The model that the store belongs to."""
    return Identity(**json.loads(meta["identity"]))


def read_tables(meta: dict[str, str]) -> list[TableSpec]:
    """The tables of the state."""
    return [TableSpec(name, dtype, tuple(shape)) for name, dtype, shape in json.loads(meta["tables"])]


def read_contents(connection: apsw.Connection, report: Report) -> Contents:
    """Read everything; problems are passed to `report`."""
    meta = read_meta(connection, report)
    for needed in ("identity", "tables", "counters"):
        if needed not in meta:
            report(f"meta: the entry '{needed}' is missing")
    counters, tables = read_counters(meta), read_tables(meta)
    pairs, parts = _read_records(connection, "base", counters.parts, PAIR, report)
    events, blocks = _read_records(connection, "blocks", counters.blocks, EVENT, report)
    if len(events) != counters.events:
        report(f"blocks: expected {counters.events} events, but found {len(events)}")
    notes = {name[5:]: value for name, value in meta.items() if name.startswith("note:")}
    pairs, parts, events, blocks, unfinished = without_unfinished(notes.get(ERASING), pairs, parts, events, blocks)
    contents = Contents(
        identity=read_identity(meta),
        users=_read_ids(connection, "users", counters.users, report),
        items=_read_ids(connection, "items", counters.items, report),
        pairs=pairs,
        parts=parts,
        events=decode_events(events),
        blocks=blocks,
        applied=counters.applied,
        clock=counters.clock,
        seconds=counters.seconds,
        state=_read_state(connection, tables, counters.state or [], report),
        attributes=_read_attributes(connection, counters.attributes, report),
        answers=_read_answers(connection, report),
        notes=notes,
        unfinished=unfinished,
    )
    _check_references(contents, counters, report)
    return contents


def _read_ids(connection: apsw.Connection, table: str, count: int, report: Report) -> list[str | None]:
    rows: list[Any] = connection.execute(f"SELECT row, id, crc FROM {table} ORDER BY row").fetchall()
    if [row for row, _, _ in rows] != list(range(count)):
        report(f"{table}: expected rows 0 to {count - 1}, but found {len(rows)} other rows")
    for row, name, crc in rows:
        if of_row(row, _bytes(name)) != crc:
            report(f"{table}: the id of row {row} is damaged")
    ids = [name for _, name, _ in rows]
    known = [name for name in ids if name is not None]
    if len(set(known)) != len(known):
        report(f"{table}: an id occurs twice")
    return ids


def _read_records(
    connection: apsw.Connection, table: str, count: int, dtype: np.dtype[np.void], report: Report
) -> tuple[NDArray[np.void], NDArray[np.int64]]:
    """The records of all rows, concatenated, and the boundaries of the rows."""
    rows: list[Any] = connection.execute(f"SELECT row, records, crc FROM {table} ORDER BY row").fetchall()
    if [row for row, _, _ in rows] != list(range(count)):
        report(f"{table}: expected rows 0 to {count - 1}, but found {len(rows)} other rows")
    good = [_bytes(content) for _, content, _ in rows]
    for at, (row, _, crc) in enumerate(rows):
        if of_row(row, good[at]) != crc or len(good[at]) % dtype.itemsize:
            report(f"{table}: row {row} is damaged")
            good[at] = b""
    sizes = [len(content) // dtype.itemsize for content in good]
    return np.frombuffer(b"".join(good), dtype=dtype).copy(), np.append(0, np.cumsum(sizes, dtype=np.int64))


def _read_state(
    connection: apsw.Connection, tables: list[TableSpec], rows: list[int], report: Report
) -> dict[str, NDArray[np.generic]]:
    """Read the state tables in chunks, to avoid a second copy in memory."""
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


def _state_chunks(connection: apsw.Connection, report: Report) -> Iterator[tuple[list[int], list[bytes]]]:
    newest: Any = connection.execute("SELECT coalesce(max(row), -1) FROM state").fetchall()[0][0]
    for start in range(0, int(newest) + 1, _CHUNK):
        rows: list[Any] = connection.execute(
            "SELECT row, value, crc FROM state WHERE row >= ? AND row < ? ORDER BY row", (start, start + _CHUNK)
        ).fetchall()
        numbers, values = [row for row, _, _ in rows], [_bytes(value) for _, value, _ in rows]
        if [of_row(row, value) for row, value in zip(numbers, values, strict=True)] != [crc for _, _, crc in rows]:
            report("state: a row is damaged")
        yield numbers, values


def _read_attributes(connection: apsw.Connection, count: int, report: Report) -> dict[str, dict[str, Any]]:
    attributes: dict[str, dict[str, Any]] = {}
    for item, value, crc in connection.execute("SELECT id, value, crc FROM attributes"):
        if of_name(str(item), str(value)) != crc:
            report("attributes: those of one item are damaged")
        else:
            attributes[str(item)] = json.loads(str(value))
    if len(attributes) != count:
        report(f"attributes: expected those of {count} items, but found {len(attributes)}")
    return attributes


def read_answer(connection: apsw.Connection, key: bytes, now: float, report: Report) -> StoredReceipt | None:
    """The stored answer to a submission with this key, unless it has expired at the store's time `now`."""
    where = "WHERE key = ? AND expires >= ?"
    return next(iter(_read_answers(connection, report, where, (key, now))), None)


def _read_answers(
    connection: apsw.Connection, report: Report, where: str = "", bindings: tuple[Any, ...] = ()
) -> list[StoredReceipt]:
    answers = []
    statement = f"SELECT key, body, text, expires, crc FROM answers {where}"
    for key, body, text, expires, crc in connection.execute(statement, bindings):
        answer = StoredReceipt(_bytes(key), _bytes(body), str(text), float(expires))
        if answer_crc(answer) != crc:
            report("answers: one is damaged")
        answers.append(answer)
    return answers


def answer_crc(answer: StoredReceipt) -> int:
    """The checksum of an answer."""
    return of_name(answer.key + answer.body, f"{answer.text}{answer.expires!r}")


def _check_references(contents: Contents, counters: Counters, report: Report) -> None:
    if not 0 <= contents.applied <= counters.blocks:
        report("the state includes more blocks than the journal has")
    pairs, events = contents.pairs, contents.events
    for column, ids, columns in (
        ("user", contents.users, (pairs["user"], events.users)),
        ("item", contents.items, (pairs["item"], events.items)),
    ):
        for rows in columns:
            if len(rows) and not (rows.min() >= 0 and rows.max() < len(ids)):
                report(f"an event refers to a {column} that does not exist")
            elif len(rows) and any(ids[row] is None for row in np.unique(rows).tolist()):
                report(f"an event refers to a {column} that was erased")


def _bytes(value: Any) -> bytes:
    """The bytes of a column; in a damaged file it may have any type."""
    return value if isinstance(value, bytes) else b"" if value is None else str(value).encode()
