"""A store in one SQLite file: write-ahead log, full sync, a checksum for every row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

from felrec.data.events import RowChange
from felrec.errors import StoreDamaged, StoreError
from felrec.files import publish
from felrec.store.checksums import to_json
from felrec.store.connecting import translated
from felrec.store.copying import copy_database, unfinished_copy
from felrec.store.database import Database, Mode
from felrec.store.protocol import Base, Batch, Contents, Identity, Removal, StoredReceipt
from felrec.store.reading import Counters, read_answer, read_contents, read_identity, read_meta
from felrec.store.records import EVENT, encode_events
from felrec.store.schema import PART
from felrec.store.state_writing import StateWriter
from felrec.store.writing import (
    add_ids,
    forget_ids,
    put_answers,
    put_attributes,
    put_meta,
    put_notes,
    put_records,
    remove_attributes,
)


class SqliteStore:
    """Mode `create` makes the file if it is missing, `write` needs an existing one, `read` never writes.

    A store whose disk is full or read-only is opened all the same: it can be read, every write raises, and the first
    write after the cause is gone succeeds.
    """

    def __init__(
        self, path: Path, mode: Mode = "create", max_bytes: int | None = None, *, accept_loss: bool = False
    ) -> None:
        """StoreDamaged if acknowledged events are missing, unless `accept_loss`."""
        self.path = path
        _check_path(path, mode)
        self._database = Database(path, mode, accept_loss=accept_loss)
        self._state = StateWriter(self._database)
        if max_bytes is not None:
            self.limit(max_bytes)

    @property
    def name(self) -> str:
        """The path."""
        return str(self.path)

    @property
    def is_empty(self) -> bool:
        """Whether `begin` was not called yet."""
        return self._database.counters.state is None

    @property
    def missing(self) -> str | None:
        """What the store acknowledged and does not have any more, if anything. Only in mode `read`."""
        return self._database.missing

    @property
    def identity(self) -> Identity:
        """The model that the store belongs to, without reading the rest."""
        with self._database.reading():
            return read_identity(read_meta(self._database.connection, self._database.damaged))

    def limit(self, max_bytes: int | None) -> None:
        """Limit the size of the file; None means no limit."""
        page = int(self._database.value("PRAGMA page_size"))
        self._database.value(f"PRAGMA max_page_count={max(1, max_bytes // page) if max_bytes else 0xFFFFFFFE}")

    def begin(self, identity: Identity, base: Base) -> None:
        """Fill an empty store."""
        counters = Counters(
            users=len(base.users), items=len(base.items), state=[0] * len(base.tables), clock=base.clock
        )
        tables = list(base.tables)
        with self._database.transaction(counters):
            connection = self._database.connection
            put_meta(connection, "identity", to_json(asdict(identity)))
            put_meta(connection, "tables", to_json(tables))
            add_ids(connection, "users", 0, base.users)
            add_ids(connection, "items", 0, base.items)
            for start in range(0, len(base.pairs), PART):
                put_records(connection, "base", counters.parts, base.pairs[start : start + PART].tobytes())
                counters.parts += 1
            self._state.put(base.state, tables, counters)
        self._database.tables = tables

    def load(self) -> Contents:
        """Read everything and verify every checksum."""
        if self.is_empty:
            raise StoreError(f"{self.name} is empty: it was created but never filled; open it with felrec serve")
        self._database.refuse_loss()
        with self._database.reading():
            return read_contents(self._database.connection, self._database.damaged)

    def answer(self, key: bytes) -> StoredReceipt | None:
        """The stored answer to a submission with this key, unless expired. Only for the thread that commits."""
        with self._database.reading():
            return read_answer(self._database.connection, key, self.seconds(), self._database.damaged)

    def seconds(self) -> float:
        """For how long the store has been open in its life, as far as commits have recorded it."""
        return self._database.seconds()

    def commit(self, batch: Batch) -> None:
        """Write a batch in one transaction; when this returns it is on disk."""
        counters = self._next_counters()
        if (batch.first_user, batch.first_item) != (counters.users, counters.items):
            raise StoreError(f"{self.name}: the batch does not match the rows of the store; this is a bug")
        with self._database.transaction(counters):
            connection = self._database.connection
            counters.users += len(batch.users)
            counters.items += len(batch.items)
            add_ids(connection, "users", batch.first_user, batch.users)
            add_ids(connection, "items", batch.first_item, batch.items)
            for events in batch.blocks:
                put_records(connection, "blocks", counters.blocks, encode_events(events))
                counters.blocks += 1
                counters.events += len(events)
                counters.journalled += len(events)
            put_answers(connection, batch.answers, self.seconds())
            put_attributes(connection, batch.attributes, counters)
            put_notes(connection, batch.notes)
        if self._database.unclean:
            self._database.clean()

    def save(self, rows: RowChange, applied: int | None = None, notes: Mapping[str, str] | None = None) -> None:
        """Write a part of the rows of the state that have changed; see Store.save."""
        self._state.save(rows, applied, notes or {})

    @property
    def writing(self) -> bool:
        """Whether a save would wait for the disk; see Store.writing."""
        return self._database.flushing

    def tidy(self, everything: bool = False) -> bool:
        """Fold some of what was saved into the pages of the state, if it has become large; see Store.tidy."""
        return self._state.tidy(everything)

    def erase(self, removal: Removal) -> bool:
        """Write a piece of an erasure in one transaction; then truncate the write-ahead log, which has old pages.

        If the process is killed in between, the next start truncates it.
        """
        counters = self._next_counters()
        with self._database.transaction(counters):
            connection = self._database.connection
            forget_ids(connection, "users", removal.users)
            forget_ids(connection, "items", removal.items)
            remove_attributes(connection, removal.attributes, counters)
            for number, events in removal.blocks.items():
                before = self._database.value("SELECT length(records) FROM blocks WHERE row = ?", number)
                counters.events += len(events) - int(before) // EVENT.itemsize
                put_records(connection, "blocks", number, encode_events(events))
            for number, pairs in removal.parts.items():
                put_records(connection, "base", number, pairs.tobytes())
            self._state.fold(counters)
            self._state.put(removal.state, self._database.tables, counters)
            put_notes(connection, removal.notes)
        if removal.clean:
            self._database.clean()
        return not self._database.unclean

    def _next_counters(self) -> Counters:
        counters = self._database.counters
        return replace(counters, state=list(counters.state or ()), changes=counters.changes + 1)

    def backup(self, path: Path) -> None:
        """Write a consistent copy. It is written and checked under another name, so that `path` is never incomplete."""
        self._database.refuse_loss()
        with unfinished_copy(path) as unfinished:
            with translated(str(path)):
                copy_database(self._database.connection, unfinished)
            with SqliteStore(unfinished, "read") as copy:
                findings = copy.verify()
            if findings:
                raise StoreDamaged(f"{self.name} is damaged, so no backup was made ({findings[0]})")
            publish(unfinished, path)

    def verify(self) -> list[str]:
        """Check the structure of the file, every checksum and every count, and that nothing acknowledged is missing."""
        findings = [self.missing] if self.missing else []
        try:
            with self._database.reading():
                for (line,) in self._database.connection.execute("PRAGMA integrity_check(20)"):
                    if line != "ok":
                        findings.append(f"SQLite: {' '.join(str(line).split())}")
                if not self.is_empty:
                    read_contents(self._database.connection, findings.append)
        except StoreDamaged as error:
            findings.append(str(error))
        return list(dict.fromkeys(findings))

    def trouble(self) -> StoreError | None:
        """Why the store cannot be written at the moment: its files are gone, or it was opened for reading only."""
        return self._database.trouble()

    def size(self) -> int:
        """Bytes of the file and its write-ahead log."""
        return sum(map(_bytes_of, (self.path, self.path.with_name(f"{self.path.name}-wal"))))

    def close(self) -> None:
        """Close the store and release it to other processes."""
        self._database.close()

    def __enter__(self) -> SqliteStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _bytes_of(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:  # it was removed
        return 0


def _check_path(path: Path, mode: Mode) -> None:
    if mode != "create" and not path.is_file():
        raise StoreError(f"{path}: no such store; check the path, or create one with felrec serve or felrec import")
    if not path.absolute().parent.is_dir():
        raise StoreError(f"{path}: there is no directory {path.parent}; create it, or choose another path")
    if mode != "read" and path.is_file() and path.stat().st_nlink > 1:
        raise StoreError(
            f"{path} is also a hard link elsewhere, which SQLite cannot serve safely; serve a copy, or remove the link"
        )
