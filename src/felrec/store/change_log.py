"""The change log: numbered entries from which the processes that share a store learn what its writer did."""

from __future__ import annotations

from felrec.errors import ChangesTrimmed
from felrec.store.checksums import Report, of_row, to_bytes
from felrec.store.connection import Connection
from felrec.store.protocol import Change
from felrec.store.reading import Counters

_NEWEST = "SELECT number, body, crc FROM changes WHERE number > ? ORDER BY number LIMIT ?"


def put_change(connection: Connection, body: bytes | None, counters: Counters) -> None:
    """Add an entry, if there is anything to learn. Within the transaction of these counters, its number has no gap."""
    if body is not None:
        counters.change += 1
        row = (counters.change, body, of_row(counters.change, body))
        connection.execute("INSERT INTO changes VALUES (?, ?, ?)", row)


def read_changes(connection: Connection, after: int, most: int, newest: int, report: Report) -> list[Change]:
    """The entries after this one, if the newest one is `newest`; ChangesTrimmed if the next one is not there."""
    found = connection.execute(_NEWEST, (after, most)).fetchall()
    entries = [Change(int(number), to_bytes(body)) for number, body, _ in found]
    if after != newest and (not entries or entries[0].number != after + 1):
        raise ChangesTrimmed(f"the change log does not have entry {after + 1} any more; load the store again")
    for entry, (_, _, crc) in zip(entries, found, strict=True):
        if of_row(entry.number, entry.body) != crc:
            report(f"changes: entry {entry.number} is damaged")
    return entries


def horizon(connection: Connection, newest: int) -> int:
    """The oldest entry that is there; the next one if there is none."""
    oldest = connection.execute("SELECT min(number) FROM changes").fetchall()[0][0]
    return newest + 1 if oldest is None else int(oldest)


def trim_changes(connection: Connection, keep: int, newest: int) -> None:
    """Remove entries but for the newest so many."""
    connection.execute("DELETE FROM changes WHERE number <= ?", (newest - keep,))


def check_changes(connection: Connection, newest: int, report: Report) -> None:
    """Report entries that are damaged or missing."""
    expected = horizon(connection, newest)
    for number, body, crc in connection.execute("SELECT number, body, crc FROM changes ORDER BY number"):
        if number != expected or of_row(number, to_bytes(body)) != crc:
            report(f"changes: entry {expected} is missing or damaged")
        expected = number + 1
    if expected != newest + 1:
        report(f"changes: the newest entry should be {newest}, but is {expected - 1}")
