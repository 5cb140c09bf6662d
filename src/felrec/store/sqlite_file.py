"""Open the file of a store: its locks, its connection, its head, and tables of the format of this version."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

import apsw

from felrec.data.events import all_rows
from felrec.data.tables.trimmed_values import trimmed
from felrec.errors import StoreDamaged, StoreError, StoreMismatch
from felrec.store.connecting import DAMAGED, FOREIGN, WAIT, connect, connect_read_only, wait_for_others
from felrec.store.copying import make_private
from felrec.store.file_locks import FileLocks
from felrec.store.format_1 import renew_answers
from felrec.store.format_2 import read_single_rows
from felrec.store.protocol import TableSpec
from felrec.store.reading import Counters, StateReader
from felrec.store.row_blobs import page_rows
from felrec.store.schema import APPLICATION, FORMAT, SHARED_TABLES, STATE_TABLES, TABLES
from felrec.store.state_rows import changed_pages, read_state
from felrec.store.writing import put_records

_log = logging.getLogger(__name__)

_PRAGMAS = (
    "journal_mode=WAL",
    "synchronous=FULL",
    "secure_delete=ON",
    "journal_size_limit=67108864",
    "wal_autocheckpoint=0",  # see Checkpointer
)
# The formats since which answers expire by `Store.seconds`, the state has pages, and processes can share a store.
_STEADY_CLOCK, _PAGES, _SHARED = 2, 3, 5
_DAY = 86_400.0  # seconds for which answers of format 1 are kept
_EMPTY = "{name} is an empty file; create a store with felrec serve or felrec import"


class SqliteFile:
    """A file that is opened to write, to read, or to read without changing anything on the disk."""

    connection: apsw.Connection

    def __init__(self, path: Path, *, shared: bool) -> None:
        self.path, self.name, self.shared = path, str(path), shared
        self.locks = FileLocks(path, shared)
        self.format = 0

    # Opening

    def open_to_write(self, *, create: bool) -> None:
        """Open it as an engine does. StoreBusy if another engine has it, StoreError if it has no tables yet."""
        self.locks.lock_beside()
        if create:
            make_private(self.path)
        self.locks.lock_file()
        self.connection = connect(self.path)
        self.wait_for_others()
        if not self._check_head() and not create:
            raise StoreError(_EMPTY.format(name=self.name))
        for pragma in _PRAGMAS:
            self._set(pragma)
        self._make_tables()

    def open_to_read(self) -> None:
        """Open it without a lock: an engine may be writing."""
        self.connection = connect(self.path)
        self.format = self._check_head()
        if not self.format:
            raise StoreError(_EMPTY.format(name=self.name))

    def open_read_only(self, refusal: StoreError) -> None:
        """Open without creating or changing any file; raises `refusal` if that is not possible either."""
        if not self.path.is_file():
            raise refusal
        self.locks.lock_file()
        try:
            self.connection = connect_read_only(self.path)
            self.format = self._check_head()
        except (apsw.Error, OSError):
            raise refusal from None
        if not self.format:
            raise refusal

    def _set(self, pragma: str) -> None:
        """Set a pragma; for the journal mode SQLite does not wait by itself for others that set it too."""
        until = time.monotonic() + WAIT / 1000
        while True:
            try:
                self.connection.execute(f"PRAGMA {pragma}").fetchall()
                return
            except apsw.BusyError:
                if not self.shared or time.monotonic() > until:
                    raise
                time.sleep(0.001)

    def _make_tables(self) -> None:
        with self.immediately():
            self.format = self._check_head()  # again: another process may have made them meanwhile
            if not self.format:
                self.connection.execute(f"PRAGMA application_id={APPLICATION}; PRAGMA user_version={FORMAT}; {TABLES}")
                self.format = FORMAT

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

    # Formats

    def upgrade(self, counters: Counters, tables: list[TableSpec]) -> None:
        """Bring a store of an earlier format up to date."""
        if self.format == FORMAT:
            return
        with self.immediately():
            self.format = self._check_head()  # again: another process may have done it meanwhile
            if self.format < _STEADY_CLOCK:
                renew_answers(self.connection, counters.seconds + _DAY)
            if self.format < _PAGES:
                self._move_to_pages(counters, tables)
            if self.format < _SHARED:
                self.connection.execute(SHARED_TABLES)
            self.connection.execute(f"PRAGMA user_version={FORMAT}")
        self.format = FORMAT

    def _move_to_pages(self, counters: Counters, tables: list[TableSpec]) -> None:
        """Write the state, which was a table of single rows, in pages."""
        _log.info("%s: bringing the state to format %d", self.name, FORMAT)
        state = read_single_rows(self.connection, tables, counters.state or [], (0, 0), self.damaged)
        self.connection.execute(f"{STATE_TABLES} DROP TABLE state")
        change, page = trimmed(all_rows(state)), page_rows(tables, of_format_5=True)
        for number, records in changed_pages(self.connection, change, tables, page, self.damaged):
            put_records(self.connection, "pages", number, records)

    @property
    def state_reader(self) -> StateReader:
        """Reads the state as a file of this format has it."""
        return read_state if self.format >= _PAGES else read_single_rows

    @property
    def has_log(self) -> bool:
        """Whether it has an inbox and a change log: a store of an earlier format that is only read has none."""
        return self.format >= _SHARED

    # The connection

    @contextmanager
    def immediately(self) -> Iterator[None]:
        """A transaction that waits at its beginning for the writes of others, never later."""
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.connection.execute("COMMIT")
        except BaseException:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            raise

    def value(self, statement: str, *bindings: Any) -> Any:
        """The first column of the first row."""
        return self.connection.execute(statement, bindings).fetchall()[0][0]

    @contextmanager
    def without_waiting(self) -> Iterator[Callable[..., Any]]:
        """`value` for statements that must not wait for others: a backup may read for a long time."""
        self.connection.set_busy_timeout(0)
        try:
            yield self.value
        finally:
            self.wait_for_others()

    def wait_for_others(self) -> None:
        """Wait for the writes of others from now on."""
        if self.shared:
            wait_for_others(self.connection)
        else:
            self.connection.set_busy_timeout(WAIT)

    def damaged(self, what: str) -> NoReturn:
        """Raise StoreDamaged."""
        raise StoreDamaged(DAMAGED.format(name=self.name, what=what))

    def keep_companions(self) -> None:
        """Leave the write-ahead log as it is when the file is closed."""
        if hasattr(self, "connection"):
            with suppress(apsw.Error):  # it is closed already
                self.connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)

    def disconnect(self) -> None:
        """Close the connection; the locks stay."""
        if hasattr(self, "connection"):
            self.connection.close()
