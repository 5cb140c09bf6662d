"""A store in one SQLite file: write-ahead log, full sync, a checksum for every row."""

from __future__ import annotations

import glob
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NoReturn

import apsw

from felrec.data.events import RowChange
from felrec.errors import StoreBusy, StoreDamaged, StoreError, StoreFull, StoreMismatch
from felrec.files import publish
from felrec.store.checksums import encode_rows, of_name, of_row, to_json
from felrec.store.protocol import Base, Batch, Contents, Identity, Removal, StoredReceipt, TableSpec
from felrec.store.reading import (
    Counters,
    answer_crc,
    read_answer,
    read_contents,
    read_counters,
    read_identity,
    read_meta,
    read_tables,
)
from felrec.store.records import EVENT, encode_events
from felrec.store.schema import APPLICATION, FORMAT, PART, TABLES

_log = logging.getLogger(__name__)

Mode = Literal["create", "write", "read"]
_WAIT = 10_000  # milliseconds to wait for the write of another process
_ROWS_AT_ONCE = 64, 8, 1  # rows per statement: each statement releases the GIL and must wait to get it back
_FOREIGN = "{name} is not a felrec store, or its header is damaged; give another file, or restore a backup"
_DAMAGED = "{name} is damaged ({what}); restore a backup, or rebuild the store from a backup with felrec replay"


class SqliteStore:
    """Mode `create` makes the file if it is missing, `write` needs an existing one, `read` never writes."""

    def __init__(self, path: Path, mode: Mode = "create", max_bytes: int | None = None) -> None:
        self.path = path
        self._fence = 0
        self._unclean = False  # old pages of an erased user may still be in the write-ahead log
        self._counters, self._tables = Counters(), list[TableSpec]()
        if mode != "create" and not path.is_file():
            raise StoreError(f"{path}: no such store; check the path, or create one with felrec serve or felrec import")
        if not path.absolute().parent.is_dir():
            raise StoreError(f"{path}: there is no directory {path.parent}; create it, or choose another path")
        self._lease = None if mode == "read" else _take_lease(path)
        self._open = True
        try:
            with self._translated():
                if mode != "read":
                    _make_private(path)
                self._connection = apsw.Connection(str(path))
                self._connection.set_busy_timeout(_WAIT)
                self._prepare(mode, max_bytes)
        except BaseException:
            self.close()
            raise

    @property
    def name(self) -> str:
        """The path."""
        return str(self.path)

    @property
    def is_empty(self) -> bool:
        """Whether `begin` was not called yet."""
        return self._counters.state is None

    @property
    def identity(self) -> Identity:
        """The model that the store belongs to, without reading the rest."""
        with self._reading():
            return read_identity(read_meta(self._connection, self._damaged))

    def limit(self, max_bytes: int | None) -> None:
        """Limit the size of the file; None means no limit."""
        page = int(self._value("PRAGMA page_size"))
        self._value(f"PRAGMA max_page_count={max(1, max_bytes // page) if max_bytes else 0xFFFFFFFE}")

    def begin(self, identity: Identity, base: Base) -> None:
        """Fill an empty store."""
        counters = Counters(
            users=len(base.users), items=len(base.items), state=[0] * len(base.tables), clock=base.clock
        )
        tables = list(base.tables)
        with self._transaction(counters):
            self._note("identity", to_json(asdict(identity)))
            self._note("tables", to_json(tables))
            self._add_ids("users", 0, base.users)
            self._add_ids("items", 0, base.items)
            for start in range(0, len(base.pairs), PART):
                self._put_records("base", counters.parts, base.pairs[start : start + PART].tobytes())
                counters.parts += 1
            self._put_state(base.state, tables, counters)
        self._tables = tables

    def load(self) -> Contents:
        """Read everything and verify every checksum."""
        if self.is_empty:
            raise StoreError(f"{self.name} is empty: it was created but never filled; open it with felrec serve")
        with self._reading():
            return read_contents(self._connection, self._damaged)

    def answer(self, key: bytes) -> StoredReceipt | None:
        """The stored answer to a submission with this key, unless expired. Only for the thread that commits."""
        with self._reading():
            return read_answer(self._connection, key, self._damaged)

    def commit(self, batch: Batch) -> None:
        """Write a batch in one transaction; when this returns it is on disk."""
        counters = replace(self._counters, state=list(self._counters.state or ()), applied=batch.applied)
        if (batch.first_user, batch.first_item) != (counters.users, counters.items):
            raise StoreError(f"{self.name}: the batch does not match the rows of the store; this is a bug")
        with self._transaction(counters):
            counters.users += len(batch.users)
            counters.items += len(batch.items)
            self._add_ids("users", batch.first_user, batch.users)
            self._add_ids("items", batch.first_item, batch.items)
            for events in batch.blocks:
                self._put_records("blocks", counters.blocks, encode_events(events))
                counters.blocks += 1
                counters.events += len(events)
            self._put_state(batch.state, self._tables, counters)
            self._connection.execute("DELETE FROM answers WHERE expires < ?", (time.time(),))
            self._connection.executemany(
                "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?)",
                [(*answer, answer_crc(answer)) for answer in batch.answers],
            )
            for item, attributes in batch.attributes.items():
                counters.attributes += 1 - int(self._value("SELECT count(*) FROM attributes WHERE id = ?", item))
                value = to_json(attributes)
                row = (item, value, of_name(item, value))
                self._connection.execute("INSERT OR REPLACE INTO attributes VALUES (?, ?, ?)", row)
            for name, value in batch.notes.items():
                self._note(f"note:{name}", value)
        if self._unclean:
            self._clean()

    def erase(self, removal: Removal) -> bool:
        """Remove a user in one transaction, then truncate the write-ahead log, which contains old pages."""
        counters = replace(self._counters, state=list(self._counters.state or ()))
        with self._transaction(counters):
            for table, rows in (("users", [removal.user]), ("items", removal.items.tolist())):
                self._connection.executemany(
                    f"UPDATE {table} SET id = NULL, crc = ? WHERE row = ?", [(of_row(row, b""), row) for row in rows]
                )
            for number, events in removal.blocks.items():
                before = self._value("SELECT length(records) FROM blocks WHERE row = ?", number)
                counters.events += len(events) - int(before) // EVENT.itemsize
                self._put_records("blocks", number, encode_events(events))
            for number, pairs in removal.parts.items():
                self._put_records("base", number, pairs.tobytes())
            self._put_state(removal.state, self._tables, counters)
        self._clean()
        return not self._unclean

    def backup(self, path: Path) -> None:
        """Write a consistent copy. It is written and checked under another name, so that `path` is never incomplete."""
        if path.exists():
            raise StoreError(f"{path} exists; give the backup another name")
        if not path.absolute().parent.is_dir():
            raise StoreError(f"{path}: there is no directory {path.parent}; create it, or choose another path")
        unfinished = path.with_name(f".{path.name}.copy")
        _remove(unfinished)  # left by a killed process
        try:
            with self._translated(str(path)):
                self._copy(unfinished)
            with SqliteStore(unfinished, "read") as copy:
                findings = copy.verify()
            if findings:
                raise StoreDamaged(f"{self.name} is damaged, so no backup was made ({findings[0]})")
            publish(unfinished, path)
        finally:
            _remove(unfinished)

    def _copy(self, path: Path) -> None:
        _make_private(path)
        copy = apsw.Connection(str(path))
        try:
            with copy.backup("main", self._connection, "main") as copying:
                copying.step(-1)  # in one step: a write in between would restart it
        finally:
            copy.close()

    def verify(self) -> list[str]:
        """Check the structure of the file, every checksum and every count."""
        findings: list[str] = []
        try:
            with self._reading():
                for (line,) in self._connection.execute("PRAGMA integrity_check(20)"):
                    if line != "ok":
                        findings.append(f"SQLite: {' '.join(str(line).split())}")
                if not self.is_empty:
                    read_contents(self._connection, findings.append)
        except StoreDamaged as error:
            findings.append(str(error))
        return list(dict.fromkeys(findings))

    def size(self) -> int:
        """Bytes of the file and its write-ahead log."""
        files = (self.path, self.path.with_name(f"{self.path.name}-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    def close(self) -> None:
        """Close the store and release it to other processes."""
        if self._open:
            self._open = False
            if hasattr(self, "_connection"):
                self._connection.close()
            if self._lease is not None:
                self._lease.close()

    def __enter__(self) -> SqliteStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # The parts of a transaction

    def _prepare(self, mode: Mode, max_bytes: int | None) -> None:
        # A process that was killed while creating the file may have left a header without tables.
        fresh = not self._value("PRAGMA application_id") and not self._value("SELECT count(*) FROM sqlite_schema")
        if fresh and mode != "create":
            raise StoreError(f"{self.name} is an empty file; create a store with felrec serve or felrec import")
        if not fresh:
            self._check_head()
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "secure_delete=ON", "journal_size_limit=67108864"):
            self._connection.execute(f"PRAGMA {pragma}").fetchall()
        if fresh:
            self._connection.execute(
                f"BEGIN IMMEDIATE; PRAGMA application_id={APPLICATION}; PRAGMA user_version={FORMAT}; {TABLES} COMMIT"
            )
        self.limit(max_bytes)
        with self._reading():
            meta = read_meta(self._connection, self._damaged)
            if "counters" in meta:
                self._counters, self._tables = read_counters(meta), read_tables(meta)
            elif any(self._value(f"SELECT count(*) FROM {table}") for table in ("users", "items", "blocks", "state")):
                self._damaged("its counts are missing")
        if mode != "read":
            self._fence = int(meta.get("fence", 0)) + 1
            self._connection.execute("BEGIN IMMEDIATE")
            self._note("fence", str(self._fence))
            self._connection.execute("COMMIT")

    def _check_head(self) -> None:
        if self._value("PRAGMA application_id") != APPLICATION:
            raise StoreDamaged(_FOREIGN.format(name=self.name))
        version = int(self._value("PRAGMA user_version"))
        if version > FORMAT:
            raise StoreMismatch(f"{self.name} was written by a newer felrec (format {version}); upgrade felrec")

    @contextmanager
    def _transaction(self, counters: Counters) -> Iterator[None]:
        """One atomic transaction; the counters are written last and kept in memory only after the commit."""
        with self._translated():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                if int(self._value("SELECT value FROM meta WHERE name = 'fence'")) != self._fence:
                    raise StoreBusy(f"{self.name}: another engine has taken over the store; stop this one")
                yield
                self._note("counters", to_json(asdict(counters)))
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
        self._counters = counters

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """A read transaction: all reads see the same snapshot."""
        with self._translated():
            self._connection.execute("BEGIN")
            try:
                yield
            except (ValueError, KeyError, TypeError) as error:  # the content cannot be decoded
                self._damaged(" ".join(str(error).split())[:120])
            finally:
                self._connection.execute("ROLLBACK")

    def _note(self, name: str, value: str) -> None:
        row = (name, value, of_name(name, value))
        self._connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?, ?)", row)

    def _add_ids(self, table: str, first: int, ids: Any) -> None:
        rows = [(row, name, of_row(row, name.encode())) for row, name in enumerate(ids, first)]
        self._connection.executemany(f"INSERT INTO {table} VALUES (?, ?, ?)", rows)

    def _put_records(self, table: str, row: int, content: bytes) -> None:
        self._connection.execute(
            f"INSERT OR REPLACE INTO {table} VALUES (?, ?, ?)", (row, content, of_row(row, content))
        )

    def _put_state(self, change: RowChange, tables: list[TableSpec], counters: Counters) -> None:
        places = {table.name: t for t, table in enumerate(tables)}
        assert counters.state is not None
        upserts: list[tuple[int, bytes, int]] = []
        for name, (rows, values) in change.items():
            t = places[name]
            numbers = [row * len(tables) + t for row in rows.tolist()]
            upserts += [(n, value, of_row(n, value)) for n, value in zip(numbers, encode_rows(values), strict=True)]
            counters.state[t] = max(counters.state[t], int(rows.max(initial=-1)) + 1)
        upserts.sort()  # in file order, so that each page is visited once
        for size in _ROWS_AT_ONCE:
            statement = f"INSERT OR REPLACE INTO state VALUES {', '.join(['(?, ?, ?)'] * size)}"
            whole = len(upserts) // size * size
            for start in range(0, whole, size):
                self._connection.execute(statement, [*chain.from_iterable(upserts[start : start + size])])
            upserts = upserts[whole:]

    def _clean(self) -> None:
        """Move the write-ahead log into the file and truncate it, unless another process still reads it.

        The data is already durable, so this must not raise; the next write retries.
        """
        self._connection.set_busy_timeout(0)  # a backup may read for a long time
        try:
            busy, _, _ = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0]
            self._unclean = bool(busy)
        except apsw.Error as error:
            _log.warning("%s: old pages are still in its write-ahead log (%s)", self.name, error)
            self._unclean = True
        finally:
            self._connection.set_busy_timeout(_WAIT)

    def _value(self, statement: str, *bindings: Any) -> Any:
        return self._connection.execute(statement, bindings).fetchall()[0][0]

    def _damaged(self, what: str) -> NoReturn:
        raise StoreDamaged(_DAMAGED.format(name=self.name, what=what))

    @contextmanager
    def _translated(self, name: str | None = None) -> Iterator[None]:
        """Translate SQLite's errors into errors that say what to do."""
        name = name or self.name
        try:
            yield
        except apsw.FullError:
            raise StoreFull(f"{name}: no space left; free some space, then write again") from None
        except apsw.NotADBError:
            raise StoreDamaged(_FOREIGN.format(name=name)) from None
        except (apsw.BusyError, apsw.LockedError):
            raise StoreBusy(f"{name}: another process has been writing for {_WAIT // 1000} s; stop it") from None
        except apsw.CantOpenError:
            raise StoreError(f"{name}: cannot be opened; check its permissions and those of its directory") from None
        except (apsw.ReadOnlyError, apsw.PermissionsError):
            raise StoreError(f"{name}: cannot be written; check its permissions and those of its directory") from None
        except apsw.IOError as error:
            raise StoreError(f"{name}: the disk failed ({error}); check it, then write again") from None
        except apsw.Error as error:
            self._damaged(" ".join(str(error).split())[:120])


def _remove(path: Path) -> None:
    """Remove an SQLite file and its companion files."""
    for left in path.parent.glob(f"{glob.escape(path.name)}*"):
        left.unlink()


def _make_private(path: Path) -> None:
    """Create a file that only its owner can read: it contains personal data. Its companion files inherit this."""
    with suppress(OSError):  # it exists already, or SQLite reports the problem
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _take_lease(path: Path) -> apsw.Connection:
    """Lock a file beside the store until the process ends; SQLite's own locks work on every system."""
    try:
        lease = apsw.Connection(f"{path}-lease")
        lease.execute("BEGIN EXCLUSIVE")
    except apsw.BusyError:
        raise StoreBusy(f"{path} is in use by another engine; stop it first, or post events to it instead") from None
    except apsw.Error:
        raise StoreError(f"{path}-lease: cannot be created; check the permissions of the directory") from None
    return lease
