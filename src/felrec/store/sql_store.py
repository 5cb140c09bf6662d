"""The verbs of a store, in statements that every database understands."""

from __future__ import annotations

import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Self

from felrec.data.tables.trimmed_values import TrimmedChange
from felrec.errors import NotLeader, StoreDamaged, StoreError
from felrec.store.change_log import check_changes, horizon, put_change, read_changes, trim_changes
from felrec.store.checksums import to_json
from felrec.store.connection import Connection
from felrec.store.database import Database
from felrec.store.inbox import Inbox, check_inbox, count_commands, read_commands, remove_commands
from felrec.store.leading import Leader, put_leader, read_leader
from felrec.store.protocol import (
    LET_GO,
    MOVED,
    Base,
    Batch,
    Besides,
    Change,
    Command,
    Contents,
    Identity,
    Removal,
    Standing,
    StoredReceipt,
)
from felrec.store.reading import (
    Counters,
    notes_of,
    read_answer,
    read_besides,
    read_contents,
    read_counters,
    read_identity,
    read_meta,
)
from felrec.store.records import encode_events, events_in
from felrec.store.row_blobs import page_rows
from felrec.store.schema import PART, ROW_TABLES
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


class SqlStore(ABC):
    """A store over a database; see SharedStore for what its methods do."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._state = StateWriter(database)
        self._inbox = Inbox(database.appending)

    @property
    def name(self) -> str:
        """The path or address."""
        return self._database.name

    @property
    @abstractmethod
    def place(self) -> str:
        """The path or address with which it was opened; see SharedStore."""

    @property
    def is_empty(self) -> bool:
        """Whether `begin` was not called yet."""
        if not self._database.leading:
            self._database.refresh()
        return self._database.counters.state is None

    @property
    def identity(self) -> Identity:
        """The model that the store belongs to, without reading the rest."""
        return read_identity(self._database.refresh())

    # Reading

    def load(self) -> Contents:
        """Read everything and verify every checksum."""
        if self.is_empty:
            raise StoreError(f"{self.name} is empty: it was created but never filled; open it with felrec serve")
        self._database.refuse_loss()
        return self._contents(self._database.damaged)

    def _contents(self, report: Callable[[str], None]) -> Contents:
        with self._database.reading(large=True):
            contents = read_contents(self._database.connection, report, self._database.state_reader)
            contents.inbox = self._read_inbox(report)
            return contents

    def _read_inbox(self, report: Callable[[str], None]) -> list[Command]:
        """Within a read transaction: all commands."""
        return read_commands(self._database.connection, sys.maxsize, (), report)

    def besides(self) -> Besides:
        """What it has besides ids, events and the state."""
        with self._database.reading():
            return read_besides(self._database.connection, self._database.damaged)

    def answer(self, key: bytes) -> StoredReceipt | None:
        """The stored answer to a submission with this key, unless expired. Only for the thread that commits."""
        with self._database.reading():
            return read_answer(self._database.connection, key, self.seconds(), self._database.damaged)

    def seconds(self) -> float:
        """For how long the store has been open in its life, as far as commits have recorded it."""
        return self._database.seconds()

    def verify(self) -> list[str]:
        """Check the structure of the database, every checksum and every count."""
        findings: list[str] = []
        try:
            with self._database.reading():
                self._check_structure(findings.append)
            if not self.is_empty:
                self._contents(findings.append)
        except StoreDamaged as error:
            findings.append(str(error))
        return list(dict.fromkeys(findings))

    def _check_structure(self, report: Callable[[str], None]) -> None:
        """Within a read transaction: check what is no part of the contents."""
        check_inbox(self._database.connection, report)
        check_changes(self._database.connection, self._database.counters.change, report)

    # Writing

    def begin(self, identity: Identity, base: Base) -> None:
        """Fill an empty store."""
        tables = list(base.tables)
        counters = Counters(
            users=len(base.users),
            items=len(base.items),
            state=[0] * len(tables),
            clock=base.clock,
            page=page_rows(tables),
        )
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
            put_notes(connection, base.notes)
        self._database.tables = tables

    def commit(self, batch: Batch) -> None:
        """Write a batch in one transaction; when this returns it is on disk."""
        counters = self._next_counters()
        with self._database.transaction(counters):
            if (batch.first_user, batch.first_item) != (counters.users, counters.items):
                raise StoreError(f"{self.name}: the batch does not match the rows of the store; this is a bug")
            connection = self._database.connection
            if MOVED in batch.notes:  # nothing may become durable in the inbox after the last look at it
                self._database.close_inbox()
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
            remove_commands(connection, batch.answered)
            put_change(connection, batch.change, counters)
        if self._database.unclean:
            self._database.clean()

    def save(
        self,
        rows: TrimmedChange,
        applied: int | None = None,
        notes: Mapping[str, str] | None = None,
        change: bytes | None = None,
    ) -> None:
        """Write a part of the rows of the state that have changed; see Store.save."""
        self._state.save(rows, applied, notes or {}, change)

    @property
    def writing(self) -> bool:
        """Whether a save would wait for the disk; see Store.writing."""
        return self._database.flushing

    def tidy(self, everything: bool = False) -> bool:
        """Fold some of what was saved into the pages of the state, if it has become large; see Store.tidy."""
        if self._database.shared and not self._database.leading:
            raise NotLeader(f"{self.name}: this process does not write to the store")
        return self._state.tidy(everything)

    def erase(self, removal: Removal) -> bool:
        """Write a piece of an erasure in one transaction; then remove old content from the disk.

        If the process is killed in between, the next start removes it.
        """
        counters = self._next_counters()
        with self._database.transaction(counters):
            connection = self._database.connection
            forget_ids(connection, "users", removal.users)
            forget_ids(connection, "items", removal.items)
            remove_attributes(connection, removal.attributes, counters)
            for number, events in removal.blocks.items():
                before = self._database.value("SELECT length(records) FROM blocks WHERE row = ?", number)
                counters.events += len(events) - (events_in(int(before)) or 0)
                put_records(connection, "blocks", number, encode_events(events))
            for number, pairs in removal.parts.items():
                put_records(connection, "base", number, pairs.tobytes())
            self._state.fold(counters)
            self._state.put(removal.state, self._database.tables, counters)
            put_notes(connection, removal.notes)
            remove_commands(connection, removal.answered)
            put_change(connection, removal.change, counters)
        if removal.clean:
            self._database.clean()
        return not self._database.unclean

    def take_rows(self, other: SqlStore, change: bytes | None) -> None:
        """Replace users, items, events and state by those of another store, in one transaction."""
        mine, identity, tables = self._next_counters(), other.identity, other._database.tables
        counters = replace(
            other._database.counters,
            attributes=mine.attributes,
            changes=mine.changes,
            journalled=mine.journalled,
            change=mine.change,
        )
        with self._database.taking_from(other._database) as take, self._database.transaction(counters):
            take(ROW_TABLES)
            connection, times = self._database.connection, int(self.notes().get(LET_GO, 0))
            put_meta(connection, "identity", to_json(asdict(identity)))
            put_meta(connection, "tables", to_json(tables))
            put_notes(connection, {LET_GO: str(times + 1)})
            put_change(connection, change, counters)
        self._database.tables, self._state = tables, StateWriter(self._database)

    def _next_counters(self) -> Counters:
        counters = self._database.counters
        return replace(counters, state=list(counters.state or ()), changes=counters.changes + 1)

    # Sharing

    def append(
        self,
        kind: str,
        body: bytes,
        notes: Mapping[str, str] | None = None,
        expected: Mapping[str, str | None] | None = None,
    ) -> int:
        """Put a command into the inbox and return its number; it is durable then. Any thread."""
        return self._inbox.append(kind, body, notes or {}, expected or {})

    def notes(self) -> dict[str, str]:
        """All notes as they are now. Any thread."""
        with self._database.looking() as connection:
            return notes_of(read_meta(connection, self._database.damaged))

    def drop_notes(self, names: Sequence[str]) -> None:
        """Remove notes. Any thread of any process."""
        with self._database.appending() as connection:
            connection.executemany("DELETE FROM meta WHERE name = ?", [(f"note:{name}",) for name in names])

    def commands(self, most: int, skip: Collection[int] = (), seconds: float = 0.0) -> list[Command]:
        """The oldest commands of the inbox, without those the caller already works on; waits for the first."""
        until = time.monotonic() + seconds
        while True:
            version = self._database.version()
            with self._database.looking() as connection:
                found = read_commands(connection, most, skip, self._database.damaged)
            if found or not self._database.wait("inbox", version, until - time.monotonic()):
                return found

    def changes(self, after: int, seconds: float, most: int = 256) -> list[Change]:
        """The entries of the change log after this one; waits up to so many seconds for the first."""
        until = time.monotonic() + seconds
        while True:
            version = self._database.version()
            with self._database.looking() as connection:
                newest = self._counters(connection).change
                found = read_changes(connection, after, most, newest, self._database.damaged)
            if found or not self._database.wait("changes", version, until - time.monotonic()):
                return found

    def standing(self) -> Standing:
        """Where the log is now. Any thread."""
        with self._database.looking() as connection:
            counters, leader = self._counters(connection), read_leader(connection)
            name = leader.name if leader.leads(self._database.now(connection)) else ""
            oldest = horizon(connection, counters.change)
            waiting = count_commands(connection)
            return Standing(counters.change, oldest, counters.applied, name, leader.token, waiting)

    def _counters(self, connection: Connection) -> Counters:
        found = connection.execute("SELECT value FROM meta WHERE name = 'counters'").fetchall()
        return read_counters({"counters": str(found[0][0])}) if found else Counters()

    def lead(self, name: str, seconds: float) -> bool:
        """Take the lease, or renew it. Any thread; nobody may write while it is taken."""
        with self._database.appending() as connection:
            self._database.lock_lease(connection)
            leader, now = read_leader(connection), self._database.now(connection)
            mine = leader.token == self._database.token
            renewed = mine and self._database.leading
            if not mine and leader.leads(now):
                return False
            if not renewed:
                self._database.unseat(connection, leader)
            token = leader.token if renewed else leader.token + 1
            put_leader(connection, Leader(token, name, now + seconds, seconds), token=not renewed)
        if not renewed:
            self._take_over(token)
        return self._database.leading

    def _take_over(self, token: int) -> None:
        with suppress(NotLeader):  # another process was faster, for example because this one was stopped for a while
            self._database.lead(token)
        self._state = StateWriter(self._database)

    def resign(self) -> None:
        """End the lease, if this process has it, so that another one need not wait for its end."""
        if not self._database.leading:
            return
        with self._database.appending() as connection:
            self._database.lock_lease(connection)
            leader = read_leader(connection)
            if leader.token == self._database.token:
                put_leader(connection, leader._replace(ends=0.0), token=False)
        self._database.leading = False

    def trim(self, keep: int) -> None:
        """Drop entries of the change log but for the newest so many. Any thread of the writer."""
        with self._database.appending() as connection:
            if not self._database.leading or read_leader(connection).token != self._database.token:
                raise NotLeader(f"{self.name}: this process does not write to the store now; nothing was changed")
            trim_changes(connection, keep, self._counters(connection).change)

    # Files and servers

    @abstractmethod
    def backup(self, path: Path) -> None:
        """Write a consistent copy to a new file, or say how to make one."""

    @abstractmethod
    def size(self) -> int:
        """Size in bytes. Never waits."""

    # Closing

    def trouble(self) -> StoreError | None:
        """Why the store cannot be written at the moment."""
        return self._database.trouble()

    def close(self) -> None:
        """Close the store and release it to other processes."""
        if self._database.shared:
            with suppress(StoreError):
                self.resign()
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
