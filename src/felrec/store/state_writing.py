"""Writes the state of a store: saves, which are cheap, and pages, into which saves are folded once they are large."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from felrec.data.events import RowChange
from felrec.data.tables.trimmed_values import TrimmedChange, trimmed
from felrec.store.change_log import put_change
from felrec.store.database import Database
from felrec.store.protocol import TableSpec
from felrec.store.reading import Counters
from felrec.store.row_blobs import page_rows
from felrec.store.state_rows import changed_pages, folded_pages, put_save
from felrec.store.writing import put_notes, put_records

_PIECE = 0.004  # about how many seconds of work on pages one transaction has: posts wait for it
_PARTS_AT_ONCE = 4  # parts of saves that are removed in one transaction
_LEAST = 32 << 20  # bytes of saves that are not worth folding


@dataclass
class _Folding:
    end: int  # the part of the saves after the last one that the pages will have
    pages: Iterator[tuple[int, bytes]]  # still to be written


class StateWriter:
    """The state of one store. See Store.save and Store.tidy."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._next = database.counters.saved  # part of a save
        self._rows: list[int] | None = None  # rows of each table with a save that is not complete
        self._bytes: int | None = None  # of all saves; None: not counted yet
        self._page_bytes: int | None = None  # of all pages, likewise
        self._folding: _Folding | None = None

    def save(self, rows: TrimmedChange, applied: int | None, notes: Mapping[str, str], change: bytes | None) -> None:
        """Write a part of a save; with `applied` the last one.

        Others that share the store rely on the last one: it must not be lost once they have seen it.
        """
        database, counters = self._database, replace(self._database.counters)
        grown = _grown(self._rows or counters.state or [], rows, database.tables)
        before = self._size()
        with database.transaction(counters, durable=database.shared and applied is not None):
            size = put_save(database.connection, rows, database.tables, self._next)
            if applied is not None:
                counters.applied, counters.saved, counters.state = applied, self._next + 1, grown
                put_notes(database.connection, notes)
                put_change(database.connection, change, counters)
        self._next += 1
        self._rows = grown if applied is None else None
        self._bytes = before + size

    def tidy(self, everything: bool) -> bool:
        """Fold a few pages, or remove a few parts that are folded. Returns whether there is more to do."""
        counters = replace(self._database.counters)
        if self._folding is None and counters.folded < counters.saved and (everything or self._are_large()):
            self._folding = _Folding(counters.saved, self._folded(counters))
        if self._folding is None:
            return self._remove_folded()
        try:
            with self._database.transaction(counters, durable=False):
                if self._put_for_a_moment(self._folding.pages):
                    counters.folded, self._folding, self._page_bytes = self._folding.end, None, None
        except BaseException:
            self._folding = None  # its pages were not written
            raise
        return True

    def fold(self, counters: Counters) -> None:
        """Fold and remove all saves, within the transaction of these counters."""
        self._folding, self._rows, self._bytes, self._page_bytes = None, None, None, None
        self._put(self._folded(counters))
        self._database.connection.execute("DELETE FROM saves")
        counters.folded = counters.saved = self._next

    def put(self, rows: RowChange, tables: list[TableSpec], counters: Counters) -> None:
        """Write rows into the pages, within the transaction of these counters. There must be no saves."""
        change, page = trimmed(rows), _page(counters, tables)
        self._put(changed_pages(self._database.connection, change, tables, page, self._database.damaged))
        counters.state = _grown(counters.state or [], rows, tables)

    def _folded(self, counters: Counters) -> Iterator[tuple[int, bytes]]:
        database, saves = self._database, (counters.folded, counters.saved)
        page = _page(counters, database.tables)
        return folded_pages(database.connection, database.tables, page, saves, database.damaged)

    def _put(self, pages: Iterator[tuple[int, bytes]]) -> None:
        for number, records in pages:
            put_records(self._database.connection, "pages", number, records)

    def _put_for_a_moment(self, pages: Iterator[tuple[int, bytes]]) -> bool:
        """Write pages until the time is up; returns whether all are written."""
        until = time.perf_counter() + _PIECE
        for number, records in pages:
            put_records(self._database.connection, "pages", number, records)
            if time.perf_counter() >= until:
                return False
        return True

    def _remove_folded(self) -> bool:
        database = self._database
        where = "WHERE row IN (SELECT row FROM saves WHERE row < ? LIMIT ?)"
        bindings = database.counters.folded, _PARTS_AT_ONCE
        size = database.value(f"SELECT sum(length(records)) FROM saves {where}", *bindings)
        if size is None:
            return False
        before = self._size()
        with database.transaction(replace(database.counters), durable=False):
            database.connection.execute(f"DELETE FROM saves {where}", bindings)
        self._bytes = before - int(size)
        return True

    def _are_large(self) -> bool:
        """Whether a start would read more from saves than from pages."""
        if self._page_bytes is None:
            self._page_bytes = self._size_of("pages")
        return self._size() > max(_LEAST, self._page_bytes)

    def _size(self) -> int:
        if self._bytes is None:
            self._bytes = self._size_of("saves")
        return self._bytes

    def _size_of(self, table: str) -> int:
        return int(self._database.value(f"SELECT coalesce(sum(length(records)), 0) FROM {table}"))


def _page(counters: Counters, tables: Sequence[TableSpec]) -> int:
    return counters.page or page_rows(tables, of_format_5=True)


def _grown(counts: Sequence[int], rows: RowChange | TrimmedChange, tables: Sequence[TableSpec]) -> list[int]:
    """The number of rows of each table, once some are written."""
    most = {name: int(numbers.max(initial=-1)) + 1 for name, (numbers, _) in rows.items()}
    return [max(count, most.get(table.name, 0)) for count, table in zip(counts, tables, strict=True)]
