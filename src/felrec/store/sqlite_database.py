"""The open file of a store as a database: its counters, who may write, and transactions on it."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Literal, NoReturn

import apsw

from felrec.errors import NotLeader, StoreBusy, StoreDamaged, StoreError, StoreFull, StoreLost
from felrec.store.change_log import trim_changes
from felrec.store.checkpointing import Checkpointer
from felrec.store.checksums import to_json
from felrec.store.connecting import translated
from felrec.store.connection import Connection
from felrec.store.database import Database, News
from felrec.store.flushing import Flusher
from felrec.store.leading import Leader, put_leader, read_leader
from felrec.store.mark import Mark, MarkFile
from felrec.store.protocol import TableSpec
from felrec.store.reading import Counters, StateReader, read_counts
from felrec.store.sqlite_file import SqliteFile
from felrec.store.sqlite_side import SideConnections
from felrec.store.writing import put_meta

_log = logging.getLogger(__name__)

Mode = Literal["create", "write", "read"]
_LONG = 1.0  # seconds of a transaction after which it renews the lease, which nobody could do meanwhile
_RETRY = 1.0  # seconds between two attempts to write to a store that could not be written
_MISSING = (
    "{name}: {what}: its write-ahead log was damaged or removed, or an older copy was put in its place; find the file"
    " or restore a backup; then, or to go on without them, run felrec verify {name} --accept-loss"
)
_GONE = "{name}: {what}: the file is gone; put it or a backup in its place, or delete {mark} to begin anew"
_LOST = "{name}: {what} while it was in use, so nothing more is stored; put it or a backup in its place, then restart"


class SqliteDatabase:
    """See SqliteStore for the modes, and Database for what others may call."""

    def __init__(self, path: Path, mode: Mode, *, shared: bool, accept_loss: bool) -> None:
        self.path, self.name, self.shared = path, str(path), shared
        self.counters, self.tables = Counters(), list[TableSpec]()
        self.missing: str | None = None  # acknowledged changes that the file lacks
        self.unclean = False  # old pages of an erased user may still be in the write-ahead log
        self.token, self.leading = 0, False
        self._id = ""
        self._counted = time.monotonic()  # when the seconds of the counters were right
        self._file, self._mark = SqliteFile(path, shared=shared), MarkFile(path)
        self._side, self._turn = SideConnections(path), threading.RLock()
        self._refusal: StoreError | None = None  # why the store is open for reading only
        self._lost: str | None = None  # why it can never be written again
        self._retry_at = 0.0
        self._checkpointer: Checkpointer | None = None
        self._flusher: Flusher | None = None
        try:
            if mode == "read":
                self._open_to_read()
            else:
                self._open(mode, accept_loss)
        except BaseException:
            self.close()
            raise

    # Opening

    @property
    def connection(self) -> apsw.Connection:
        """See Database.connection."""
        return self._file.connection

    def _open(self, mode: Mode, accept_loss: bool) -> None:
        try:
            self._open_to_write(mode == "create", accept_loss)
        except StoreError as error:
            # Busy, damaged, of another format. What others write cannot be read without SQLite's files beside it.
            if self.shared or type(error) not in (StoreError, StoreFull):
                raise
            self._open_read_only(error)
            _log.error("%s; until then it is only read", error)

    def _open_to_write(self, create: bool, accept_loss: bool) -> None:
        with translated(self.name):
            self._file.locks.lock_beside()
            if create and not self.path.exists():
                self._find_loss(self._mark.read(), accept=False)
            self._file.open_to_write(create=create)
            self._read_counts(accept_loss)
            self._file.upgrade(self.counters, self.tables)
            if not self.shared:
                self._take_over(None)
        self._file.locks.watch_companions()

    def _open_to_read(self) -> None:
        try:
            with translated(self.name):
                self._file.open_to_read()
        except StoreFull as error:
            self._open_read_only(error)
            return
        self._read_counts(accept_loss=True)

    def _open_read_only(self, refusal: StoreError) -> None:
        """Open without creating or changing any file; raises `refusal` if that is not possible either."""
        self._disconnect()
        self._file.open_read_only(refusal)
        self._read_counts(accept_loss=False)
        self._refusal = refusal

    def _read_counts(self, accept_loss: bool) -> None:
        mark = self._mark.read()  # first: an engine may be writing both
        self.refresh()
        self._find_loss(mark, accept_loss)

    def refresh(self) -> dict[str, str]:
        """See Database.refresh."""
        with self.reading():
            meta, self.counters, self.tables = read_counts(self.connection, self.damaged)
        self._counted = time.monotonic()
        self._id = meta.get("store", "")
        return meta

    def _find_loss(self, mark: Mark | None, accept: bool) -> None:
        """Compare the store with its mark; a mark of another store says nothing."""
        begun = self.counters.state is not None
        if mark is None or mark.changes <= self.counters.changes or (begun and mark.store != self._id):
            return
        changes, events = mark.changes - self.counters.changes, mark.events - self.counters.journalled
        self.missing = f"{changes:,} acknowledged change(s) with {events:,} event(s) are missing"
        self._file.keep_companions()  # somebody may want to look at them
        if not accept:
            self.refuse_loss()

    def refuse_loss(self) -> None:
        """Raise StoreDamaged if acknowledged changes are missing."""
        if self.missing:
            advice = _GONE if self.counters.state is None else _MISSING
            raise StoreDamaged(advice.format(name=self.name, what=self.missing, mark=self._mark.path))

    # Leading

    def lead(self, token: int) -> None:
        """See Database.lead."""
        self.refresh()
        self._take_over(token)

    def _take_over(self, token: int | None) -> None:
        """Begin to write with this token, or fence off every other engine, whatever became of its locks."""
        self.clean()  # finishes an erasure that a kill interrupted
        with translated(self.name), self._file.immediately():
            newest = read_leader(self.connection).token
            if token is None:
                token = newest + 1
                put_leader(self.connection, Leader(token))
                self._drop_followers()
            self.token, self.leading = token, token == newest or not self.shared
            self._check_token()
            outside = (self.counters.folded, self.counters.saved)  # saves that a kill left: folded, or not complete
            self.connection.execute("DELETE FROM saves WHERE row < ? OR row >= ?", outside)
            if not self._id:
                self._id = secrets.token_hex(16)
                put_meta(self.connection, "store", self._id)
        if self.missing:
            _log.warning("%s: %s, which was accepted", self.name, self.missing)
            self.missing = None
        self._mark.write(Mark(self._id, self.counters.changes, self.counters.journalled))
        if self._checkpointer is None:
            self._checkpointer = Checkpointer(self.path, self.connection, self._file.locks.lost)
            self._flusher = Flusher(self.path)

    def _drop_followers(self) -> None:
        """Let processes that followed, until their locks were lost, load everything again."""
        if self.counters.change:
            self.counters.change += 1
            trim_changes(self.connection, keep=0, newest=self.counters.change)
            self._put_counters(self.counters)

    def lock_lease(self, _connection: Connection) -> None:
        """See Database.lock_lease. SQLite has only one lock for everything, and `appending` has it."""

    def close_inbox(self) -> None:
        """See Database.close_inbox. While a transaction has SQLite's lock, nothing is appended."""

    def unseat(self, _connection: Connection, _leader: Leader) -> None:
        """See Database.unseat. While this process has SQLite's lock, nothing else is under way."""

    # Transactions

    @contextmanager
    def transaction(self, counters: Counters, *, durable: bool = True) -> Iterator[None]:
        """See Database.transaction."""
        with self._turn, translated(self.name):
            if self.shared and not self.leading:
                self._refuse()
            self._ensure_writable()
            if not durable and self._flusher:
                self._flusher.wait()
                self.connection.execute("PRAGMA synchronous=NORMAL")
            began = time.monotonic()
            try:
                with self._file.immediately():
                    self._check_token()
                    yield
                    if self.shared and time.monotonic() > began + _LONG:
                        self._renew()
                    self._put_counters(counters)
            finally:
                if not durable and self._flusher:
                    self._flusher.begin()
                    self.connection.execute("PRAGMA synchronous=FULL")
        self.counters, self._counted = counters, time.monotonic()
        if durable:
            self._mark.write(Mark(self._id, counters.changes, counters.journalled))
        if what := self._file.locks.lost():
            self._lost = _LOST.format(name=self.name, what=what)  # for good: the caller does not know of this commit
            raise StoreLost(self._lost)

    @contextmanager
    def taking_from(self, other: Database) -> Iterator[Callable[[Sequence[str]], None]]:
        """See Database.taking_from. The rows are copied."""
        assert isinstance(other, SqliteDatabase)

        def take(tables: Sequence[str]) -> None:
            for table in tables:
                self.connection.execute(f"DELETE FROM main.{table}")
                self.connection.execute(f"INSERT INTO main.{table} SELECT * FROM beside.{table}")

        with self._turn, translated(self.name):
            self.connection.execute("ATTACH ? AS beside", (str(other.path),))
            try:
                yield take
            finally:
                self.connection.execute("DETACH beside")

    def _check_token(self) -> None:
        if not self.leading or int(self.value("SELECT value FROM meta WHERE name = 'fence'")) != self.token:
            self.leading = False
            self._refuse()

    def _refuse(self) -> NoReturn:
        if self.shared:
            raise NotLeader(f"{self.name}: this process does not write to the store now; nothing was changed")
        raise StoreBusy(f"{self.name}: another engine has taken over the store; stop this one")

    def _renew(self) -> None:
        leader = read_leader(self.connection)
        put_leader(self.connection, leader._replace(ends=self.now(self.connection) + leader.seconds), token=False)

    def _put_counters(self, counters: Counters) -> None:
        if counters.state is not None:
            counters.seconds = self.seconds()
            put_meta(self.connection, "counters", to_json(vars(counters)))

    @contextmanager
    def reading(self, *, large: bool = False) -> Iterator[None]:
        """See Database.reading. SQLite finds row after row anyway."""
        with self._turn, translated(self.name):
            self.connection.execute("BEGIN")
            try:
                yield
            except (ValueError, KeyError, TypeError) as error:  # the content cannot be decoded
                self.damaged(" ".join(str(error).split())[:120])
            finally:
                self.connection.execute("ROLLBACK")

    @property
    def flushing(self) -> bool:
        """Whether a transaction that is not durable would wait for the disk."""
        return self._flusher is not None and self._flusher.busy

    @property
    def state_reader(self) -> StateReader:
        """See Database.state_reader."""
        return self._file.state_reader

    @property
    def has_log(self) -> bool:
        """Whether it has an inbox and a change log: a store of an earlier format that is only read has none."""
        return self._file.has_log

    def value(self, statement: str, *bindings: Any) -> Any:
        """The first column of the first row."""
        return self._file.value(statement, *bindings)

    def seconds(self) -> float:
        """See Store.seconds."""
        return self.counters.seconds + time.monotonic() - self._counted

    def clean(self) -> None:
        """Move the write-ahead log into the file and truncate it, unless another process still reads it.

        The data is already durable, so this must not raise; the next write retries.
        """
        try:
            with (
                self._checkpointer.lock if self._checkpointer else nullcontext(),
                self._file.without_waiting() as value,
            ):
                self.unclean = bool(value("PRAGMA wal_checkpoint(TRUNCATE)"))
        except apsw.Error as error:
            _log.warning("%s: old pages are still in its write-ahead log (%s)", self.name, error)
            self.unclean = True

    def damaged(self, what: str) -> NoReturn:
        """Raise StoreDamaged."""
        self._file.damaged(what)

    # For every other thread

    def appending(self) -> AbstractContextManager[Connection]:
        """See Database.appending."""
        return self._side.appending()

    def looking(self) -> AbstractContextManager[Connection]:
        """See Database.looking."""
        return self._side.looking()

    def version(self) -> int:
        """See Database.version."""
        return self._side.version()

    def wait(self, _what: News, version: int, seconds: float) -> bool:
        """See Database.wait."""
        return self._side.wait(version, seconds)

    def now(self, connection: Connection) -> float:
        """See Database.now."""
        return self._side.now(connection)

    # Trouble

    def trouble(self) -> StoreError | None:
        """See Store.trouble."""
        if self._lost:
            return StoreLost(self._lost)
        if what := self._file.locks.lost():
            return StoreLost(_LOST.format(name=self.name, what=what))
        return self._refusal

    def _ensure_writable(self) -> None:
        """Raise if the store is lost; try again to write to a store that could not be written."""
        trouble = self.trouble()
        if trouble is None:
            return
        if isinstance(trouble, StoreLost) or time.monotonic() < self._retry_at:
            raise type(trouble)(str(trouble))
        self._retry_at = time.monotonic() + _RETRY
        changes = self.counters.changes
        self._disconnect()  # its shared memory is read-only, and a second connection would share it
        try:
            self._open_to_write(create=False, accept_loss=False)
        except StoreError as error:
            self._open_read_only(error)
            raise
        self._refusal = None
        if self.counters.changes != changes:
            self._lost = f"{self.name}: another engine wrote to it; restart this one"
            raise StoreLost(self._lost)
        _log.warning("%s can be written again", self.name)

    # Closing

    def close(self) -> None:
        """Close the file, then release it to other processes."""
        if self._file.locks.moved():  # closing would delete files of the store that is there now
            self._file.keep_companions()
        self._side.close()
        self._disconnect()
        self._mark.close()
        self._file.locks.close()

    def _disconnect(self) -> None:
        if self._checkpointer is not None:
            self._checkpointer.close()
            self._checkpointer = None
        if self._flusher is not None:
            self._flusher.close()
            self._flusher = None
        self._file.disconnect()
