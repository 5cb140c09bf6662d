"""Read a whole store file and verify every checksum and count."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from felrec.data.seen import PAIR
from felrec.store.checksums import Report, of_name, of_row, to_bytes
from felrec.store.connection import Connection
from felrec.store.protocol import ERASING, Besides, Contents, Identity, StoredReceipt, TableSpec
from felrec.store.records import decode_events, events_in, joined_blocks
from felrec.store.state_rows import read_state
from felrec.store.unfinished import without_unfinished

StateReader = Callable[
    [Connection, list[TableSpec], list[int], tuple[int, int], Report], dict[str, NDArray[np.generic]]
]


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
    folded: int = 0  # parts of saves that are in the pages of the state
    saved: int = 0  # parts of saves that are complete; later ones do not count
    seconds: float = 0.0  # that the store has been open, ever; see Store.seconds
    change: int = 0  # the newest entry of the change log
    page: int = 0  # rows of a page of the state; 0: as many as in format 5


def read_meta(connection: Connection, report: Report) -> dict[str, str]:
    """All entries of the table `meta` by name."""
    entries = {}
    for name, value, crc in connection.execute("SELECT name, value, crc FROM meta"):
        if of_name(str(name), str(value)) != crc:
            report(f"meta: the entry {str(name)[:40]!r} is damaged")
        entries[str(name)] = str(value)
    return entries


def read_counts(connection: Connection, report: Report) -> tuple[dict[str, str], Counters, list[TableSpec]]:
    """All entries of `meta`, with the counters and the tables of the state; empty ones before a store begins."""
    meta = read_meta(connection, report)
    if "counters" in meta:
        return meta, read_counters(meta), read_tables(meta)
    for table in ("users", "items", "blocks"):
        if connection.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchall():
            report("its counts are missing")
    return meta, Counters(), []


def read_counters(meta: dict[str, str]) -> Counters:
    """The stored row counts."""
    return Counters(**json.loads(meta["counters"]))


def read_identity(meta: dict[str, str]) -> Identity:
    """The model that the store belongs to."""
    return Identity(**json.loads(meta["identity"]))


def notes_of(meta: dict[str, str]) -> dict[str, str]:
    """The notes of the engine."""
    return {name[5:]: value for name, value in meta.items() if name.startswith("note:")}


def read_tables(meta: dict[str, str]) -> list[TableSpec]:
    """The tables of the state."""
    return [TableSpec(name, dtype, tuple(shape)) for name, dtype, shape in json.loads(meta["tables"])]


def read_contents(connection: Connection, report: Report, state_of: StateReader = read_state) -> Contents:
    """Read everything; problems are passed to `report`."""
    meta = read_meta(connection, report)
    for needed in ("identity", "tables", "counters"):
        if needed not in meta:
            report(f"meta: the entry '{needed}' is missing")
    counters, tables = read_counters(meta), read_tables(meta)
    pairs, parts = _read_pairs(connection, counters.parts, report)
    events, blocks = _read_blocks(connection, counters.blocks, report)
    if len(events) != counters.events:
        report(f"blocks: expected {counters.events} events, but found {len(events)}")
    notes = notes_of(meta)
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
        state=state_of(connection, tables, counters.state or [], (counters.folded, counters.saved), report),
        attributes=_read_attributes(connection, counters.attributes, report),
        answers=_read_answers(connection, report),
        notes=notes,
        unfinished=unfinished,
        change=counters.change,
    )
    _check_references(contents, counters, report)
    return contents


def read_besides(connection: Connection, report: Report) -> Besides:
    """Read what a store has besides ids, events and the state."""
    meta = read_meta(connection, report)
    attributes = _read_attributes(connection, read_counters(meta).attributes, report)
    return Besides(attributes, _read_answers(connection, report), notes_of(meta))


def _read_ids(connection: Connection, table: str, count: int, report: Report) -> list[str | None]:
    rows: list[Any] = connection.execute(f"SELECT row, id, crc FROM {table} ORDER BY row").fetchall()
    if [row for row, _, _ in rows] != list(range(count)):
        report(f"{table}: expected rows 0 to {count - 1}, but found {len(rows)} other rows")
    for row, name, crc in rows:
        if of_row(row, to_bytes(name)) != crc:
            report(f"{table}: the id of row {row} is damaged")
    ids = [name for _, name, _ in rows]
    known = [name for name in ids if name is not None]
    if len(set(known)) != len(known):
        report(f"{table}: an id occurs twice")
    return ids


def _read_pairs(connection: Connection, count: int, report: Report) -> tuple[NDArray[np.void], NDArray[np.int64]]:
    """The pairs of the base, and the boundaries of its parts."""
    parts, sizes = _read_rows(connection, "base", count, _pairs_in, report)
    return np.frombuffer(b"".join(parts), dtype=PAIR).copy(), sizes


def _pairs_in(size: int) -> int | None:
    return None if size % PAIR.itemsize else size // PAIR.itemsize


def _read_blocks(connection: Connection, count: int, report: Report) -> tuple[NDArray[np.void], NDArray[np.int64]]:
    """The records of the journal, and the boundaries of its blocks."""
    blocks, sizes = _read_rows(connection, "blocks", count, events_in, report)
    return joined_blocks(blocks), sizes


def _read_rows(
    connection: Connection, table: str, count: int, records_in: Callable[[int], int | None], report: Report
) -> tuple[list[bytes], NDArray[np.int64]]:
    """The content of all rows, and the boundaries of their records. `records_in` knows how many a size has."""
    rows: list[Any] = connection.execute(f"SELECT row, records, crc FROM {table} ORDER BY row").fetchall()
    if [row for row, _, _ in rows] != list(range(count)):
        report(f"{table}: expected rows 0 to {count - 1}, but found {len(rows)} other rows")
    good = [to_bytes(content) for _, content, _ in rows]
    for at, (row, _, crc) in enumerate(rows):
        if of_row(row, good[at]) != crc or records_in(len(good[at])) is None:
            report(f"{table}: row {row} is damaged")
            good[at] = b""
    sizes = [records_in(len(content)) or 0 for content in good]
    return good, np.append(0, np.cumsum(sizes, dtype=np.int64))


def _read_attributes(connection: Connection, count: int, report: Report) -> dict[str, dict[str, Any]]:
    attributes: dict[str, dict[str, Any]] = {}
    for item, value, crc in connection.execute("SELECT id, value, crc FROM attributes"):
        if of_name(str(item), str(value)) != crc:
            report("attributes: those of one item are damaged")
        else:
            attributes[str(item)] = json.loads(str(value))
    if len(attributes) != count:
        report(f"attributes: expected those of {count} items, but found {len(attributes)}")
    return attributes


def read_answer(connection: Connection, key: bytes, now: float, report: Report) -> StoredReceipt | None:
    """The stored answer to a submission with this key, unless it has expired at the store's time `now`."""
    where = "WHERE key = ? AND expires >= ?"
    return next(iter(_read_answers(connection, report, where, (key, now))), None)


def _read_answers(
    connection: Connection, report: Report, where: str = "", bindings: tuple[Any, ...] = ()
) -> list[StoredReceipt]:
    answers = []
    statement = f"SELECT key, body, text, expires, crc FROM answers {where}"
    for key, body, text, expires, crc in connection.execute(statement, bindings):
        answer = StoredReceipt(to_bytes(key), to_bytes(body), str(text), float(expires))
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
