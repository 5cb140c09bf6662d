"""The open file of a store: its locks, its head and counters, and transactions on it."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, Literal, NoReturn

import apsw

from felrec.data.events import all_rows
from felrec.errors import StoreBusy, StoreDamaged, StoreError, StoreFull, StoreLost, StoreMismatch
from felrec.store.checkpointing import Checkpointer
from felrec.store.checksums import to_json
from felrec.store.connecting import DAMAGED, FOREIGN, WAIT, connect, connect_read_only, translated
from felrec.store.copying import make_private
from felrec.store.flushing import Flusher
from felrec.store.format_2 import read_single_rows
from felrec.store.lease import Lease
from felrec.store.mark import Mark, MarkFile
from felrec.store.protocol import TableSpec
from felrec.store.reading import Counters, read_counters, read_meta, read_tables
from felrec.store.schema import APPLICATION, FORMAT, STATE_TABLES, TABLES
from felrec.store.state_rows import changed_pages
from felrec.store.writing import put_meta, put_records, renew_answers

_log = logging.getLogger(__name__)

Mode = Literal["create", "write", "read"]
_PRAGMAS = (
    "journal_mode=WAL",
    "synchronous=FULL",
    "secure_delete=ON",
    "journal_size_limit=67108864",
    "wal_autocheckpoint=0",  # see Checkpointer
)
_STEADY_CLOCK, _PAGES = 2, 3  # the formats since which answers expire by `Store.seconds`, and the state has pages
_DAY = 86_400.0  # seconds for which answers of format 1 are kept
_RETRY = 1.0  # seconds between two attempts to write to a store that could not be written
_EMPTY = "{name} is an empty file; create a store with felrec serve or felrec import"
_MISSING = (
    "{name}: {what}: its write-ahead log was damaged or removed, or an older copy was put in its place; find the file"
    " or restore a backup; then, or to go on without them, run felrec verify {name} --accept-loss"
)
_GONE = "{name}: {what}: the file is gone; put it or a backup in its place, or delete {mark} to begin anew"
_LOST = "{name}: {what} while it was in use, so nothing more is stored; put it or a backup in its place, then restart"


class Database:
    """See SqliteStore for the modes. Only one thread may use it, except for `trouble`."""

    def __init__(self, path: Path, mode: Mode, *, accept_loss: bool) -> None:
        self.path, self.name = path, str(path)
        self.counters, self.tables = Counters(), list[TableSpec]()
        self.missing: str | None = None  # acknowledged changes that the file lacks
        self.unclean = False  # old pages of an erased user may still be in the write-ahead log
        self.connection: apsw.Connection
        self._id, self._fence = "", 0
        self._counted = time.monotonic()  # when the seconds of the counters were right
        self._lease, self._mark = Lease(path), MarkFile(path)
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

    def _open(self, mode: Mode, accept_loss: bool) -> None:
        try:
            self._open_to_write(mode == "create", accept_loss)
        except StoreError as error:
            if type(error) not in (StoreError, StoreFull):  # busy, damaged, of another format
                raise
            self._open_read_only(error)
            _log.error("%s; until then it is only read", error)

    def _open_to_write(self, create: bool, accept_loss: bool) -> None:
        with translated(self.name):
            self._lease.lock_beside()
            if create:
                if not self.path.exists():
                    self._find_loss(self._mark.read(), accept=False)
                make_private(self.path)
            self._lease.lock_file()
            self.connection = connect(self.path)
            version = self._check_head()
            if not version and not create:
                raise StoreError(_EMPTY.format(name=self.name))
            for pragma in _PRAGMAS:
                self.connection.execute(f"PRAGMA {pragma}").fetchall()
            if not version:
                head = f"PRAGMA application_id={APPLICATION}; PRAGMA user_version={FORMAT}"
                self.connection.execute(f"BEGIN IMMEDIATE; {head}; {TABLES} COMMIT")
            meta = self._read_counts(accept_loss)
            self.clean()  # finishes an erasure that a kill interrupted
            self._claim(meta)
            self._checkpointer = Checkpointer(self.path, self.connection, self._lease.lost)
            self._flusher = Flusher(self.path)
        self._lease.watch_companions()

    def _open_to_read(self) -> None:
        try:
            with translated(self.name):
                self.connection = connect(self.path)
                version = self._check_head()
        except StoreFull as error:
            self._open_read_only(error)
            return
        if not version:
            raise StoreError(_EMPTY.format(name=self.name))
        self._read_counts(accept_loss=True)

    def _open_read_only(self, refusal: StoreError) -> None:
        """Open without creating or changing any file; raises `refusal` if that is not possible either."""
        self._disconnect()
        if not self.path.is_file():
            raise refusal
        self._lease.lock_file()
        try:
            self.connection = connect_read_only(self.path)
            version = self._check_head()
        except (apsw.Error, OSError):
            raise refusal from None
        if not version:
            raise refusal
        self._read_counts(accept_loss=False)
        self._refusal = refusal

    def _check_head(self) -> int:
        """The format of the file; 0 if it has no content yet."""
        # A process that was killed while creating the file may have left a header without tables.
        application = self.value("PRAGMA application_id")
        if not application and not self.value("SELECT count(*) FROM sqlite_schema"):
            return 0
        if application != APPLICATION:
            raise StoreDamaged(FOREIGN.format(name=self.name))
        version = int(self.value("PRAGMA user_version"))
        if version > FORMAT:
            raise StoreMismatch(f"{self.name} was written by a newer felrec (format {version}); upgrade felrec")
        return version

    def _read_counts(self, accept_loss: bool) -> dict[str, str]:
        mark = self._mark.read()  # first: an engine may be writing both
        with self.reading():
            meta = read_meta(self.connection, self.damaged)
            if "counters" in meta:
                self.counters, self.tables = read_counters(meta), read_tables(meta)
            elif any(self.value(f"SELECT count(*) FROM {table}") for table in ("users", "items", "blocks")):
                self.damaged("its counts are missing")
        self._id = meta.get("store", "")
        self._find_loss(mark, accept_loss)
        return meta

    def _find_loss(self, mark: Mark | None, accept: bool) -> None:
        """Compare the store with its mark; a mark of another store says nothing."""
        begun = self.counters.state is not None
        if mark is None or mark.changes <= self.counters.changes or (begun and mark.store != self._id):
            return
        changes, events = mark.changes - self.counters.changes, mark.events - self.counters.journalled
        self.missing = f"{changes:,} acknowledged change(s) with {events:,} event(s) are missing"
        self._keep_companions()  # somebody may want to look at them
        if not accept:
            self.refuse_loss()

    def refuse_loss(self) -> None:
        """Raise StoreDamaged if acknowledged changes are missing."""
        if self.missing:
            advice = _GONE if self.counters.state is None else _MISSING
            raise StoreDamaged(advice.format(name=self.name, what=self.missing, mark=self._mark.path))

    def _claim(self, meta: dict[str, str]) -> None:
        """Fence off every other engine; bring a store of an earlier format up to date."""
        self._fence = int(meta.get("fence", 0)) + 1
        self.connection.execute("BEGIN IMMEDIATE")
        put_meta(self.connection, "fence", str(self._fence))
        if not self._id:
            self._id = secrets.token_hex(16)
            put_meta(self.connection, "store", self._id)
        version = int(self.value("PRAGMA user_version"))
        if version < _STEADY_CLOCK:
            renew_answers(self.connection, self.counters.seconds + _DAY)
        if version < _PAGES:
            self._move_to_pages()
        if version < FORMAT:
            self.connection.execute(f"PRAGMA user_version={FORMAT}")
        outside = (self.counters.folded, self.counters.saved)  # saves that a kill left: folded, or not complete
        self.connection.execute("DELETE FROM saves WHERE row < ? OR row >= ?", outside)
        self.connection.execute("COMMIT")
        if self.missing:
            _log.warning("%s: %s, which was accepted", self.name, self.missing)
            self.missing = None
        self._mark.write(Mark(self._id, self.counters.changes, self.counters.journalled))

    def _move_to_pages(self) -> None:
        """Write the state, which was a table of single rows, in pages."""
        _log.info("%s: bringing the state to format %d", self.name, FORMAT)
        state = read_single_rows(self.connection, self.tables, self.counters.state or [], self.damaged)
        self.connection.execute(f"{STATE_TABLES} DROP TABLE state")
        for number, records in changed_pages(self.connection, all_rows(state), self.tables, self.damaged):
            put_records(self.connection, "pages", number, records)

    # Transactions

    @contextmanager
    def transaction(self, counters: Counters, *, durable: bool = True) -> Iterator[None]:
        """One atomic transaction; the counters are written last and kept in memory only after the commit.

        One that is not durable becomes so soon, at the latest with the next one that is, or is lost as a whole.
        """
        self._ensure_writable()
        with translated(self.name):
            if not durable and self._flusher:
                self._flusher.wait()
                self.connection.execute("PRAGMA synchronous=NORMAL")
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                if int(self.value("SELECT value FROM meta WHERE name = 'fence'")) != self._fence:
                    raise StoreBusy(f"{self.name}: another engine has taken over the store; stop this one")
                yield
                counters.seconds = self.seconds()
                put_meta(self.connection, "counters", to_json(vars(counters)))
                self.connection.execute("COMMIT")
            except BaseException:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
                raise
            finally:
                if not durable and self._flusher:
                    self._flusher.begin()
                    self.connection.execute("PRAGMA synchronous=FULL")
        self.counters, self._counted = counters, time.monotonic()
        if durable:
            self._mark.write(Mark(self._id, counters.changes, counters.journalled))
        if what := self._lease.lost():
            self._lost = _LOST.format(name=self.name, what=what)  # for good: the caller does not know of this commit
            raise StoreLost(self._lost)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """A read transaction: all reads see the same snapshot."""
        with translated(self.name):
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

    def value(self, statement: str, *bindings: Any) -> Any:
        """The first column of the first row."""
        return self.connection.execute(statement, bindings).fetchall()[0][0]

    def seconds(self) -> float:
        """See Store.seconds."""
        return self.counters.seconds + time.monotonic() - self._counted

    def clean(self) -> None:
        """Move the write-ahead log into the file and truncate it, unless another process still reads it.

        The data is already durable, so this must not raise; the next write retries.
        """
        self.connection.set_busy_timeout(0)  # a backup may read for a long time
        try:
            with self._checkpointer.lock if self._checkpointer else nullcontext():
                busy, _, _ = self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0]
            self.unclean = bool(busy)
        except apsw.Error as error:
            _log.warning("%s: old pages are still in its write-ahead log (%s)", self.name, error)
            self.unclean = True
        finally:
            self.connection.set_busy_timeout(WAIT)

    def damaged(self, what: str) -> NoReturn:
        """Raise StoreDamaged."""
        raise StoreDamaged(DAMAGED.format(name=self.name, what=what))

    # Trouble

    def trouble(self) -> StoreError | None:
        """See Store.trouble."""
        if self._lost:
            return StoreLost(self._lost)
        if what := self._lease.lost():
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
        if self._lease.moved():  # closing would delete files of the store that is there now
            self._keep_companions()
        self._disconnect()
        self._mark.close()
        self._lease.close()

    def _disconnect(self) -> None:
        if self._checkpointer is not None:
            self._checkpointer.close()
            self._checkpointer = None
        if self._flusher is not None:
            self._flusher.close()
            self._flusher = None
        if hasattr(self, "connection"):
            self.connection.close()

    def _keep_companions(self) -> None:
        """Leave the write-ahead log as it is when the file is closed."""
        if hasattr(self, "connection"):
            with suppress(apsw.Error):  # it is closed already
                self.connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
