"""A store in one SQLite file: write-ahead log, full sync, a checksum for every row."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from felrec.errors import StoreDamaged, StoreError, StoreMissing
from felrec.files import publish
from felrec.store.connecting import translated
from felrec.store.copying import copy_database, unfinished_copy
from felrec.store.protocol import Command, Replaceable
from felrec.store.replacing import make_way, remove_store, unfinished_name
from felrec.store.sql_store import SqlStore
from felrec.store.sqlite_database import Mode, SqliteDatabase


class SqliteStore(SqlStore):
    """Mode `create` makes the file if it is missing, `write` needs an existing one, `read` never writes.

    A store whose disk is full or read-only is opened all the same: it can be read, every write raises, and the first
    write after the cause is gone succeeds. With `shared` other processes can have it open too, and none writes before
    it leads; see SharedStore.
    """

    _database: SqliteDatabase

    def __init__(
        self,
        path: Path,
        mode: Mode = "create",
        max_bytes: int | None = None,
        *,
        shared: bool = False,
        accept_loss: bool = False,
    ) -> None:
        """StoreDamaged if acknowledged events are missing, unless `accept_loss`."""
        self.path = path
        self._max_bytes, self._shared = max_bytes, shared
        self._open(mode, accept_loss=accept_loss)

    def _open(self, mode: Mode, *, accept_loss: bool = False) -> None:
        _check_path(self.path, mode)
        super().__init__(SqliteDatabase(self.path, mode, shared=self._shared, accept_loss=accept_loss))
        if self._max_bytes is not None:
            self.limit(self._max_bytes)

    @property
    def place(self) -> str:
        """See SharedStore."""
        return str(self.path)

    @property
    def alone(self) -> bool:
        """See Replaceable."""
        return not self._shared

    @property
    def missing(self) -> str | None:
        """What the store acknowledged and does not have any more, if anything. Only in mode `read`."""
        return self._database.missing

    def limit(self, max_bytes: int | None) -> None:
        """Limit the size of the file; None means no limit."""
        self._max_bytes = max_bytes
        page = int(self._database.value("PRAGMA page_size"))
        self._database.value(f"PRAGMA max_page_count={max(1, max_bytes // page) if max_bytes else 0xFFFFFFFE}")

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

    def beside(self) -> SqliteStore:
        """See Replaceable."""
        path = unfinished_name(self.path)
        remove_store(path)
        return SqliteStore(path)

    def discard(self) -> None:
        """See Replaceable."""
        self.close()
        remove_store(self.path)

    def become(self, other: Replaceable, change: bytes | None = None) -> None:
        """See Replaceable. A file that others have open is copied into; else the other one takes its place."""
        assert isinstance(other, SqliteStore)
        if self._shared:
            self.take_rows(other, change)
            other.discard()
            return
        other.close()
        self.close()  # the name is free for a moment: a second service that starts just then is refused, or this one
        make_way(self.path, other.path)
        publish(other.path, self.path)
        remove_store(other.path)
        self._open("write")

    def verify(self) -> list[str]:
        """Also check that nothing acknowledged is missing."""
        return [*([self.missing] if self.missing else []), *super().verify()]

    def _check_structure(self, report: Callable[[str], None]) -> None:
        for (line,) in self._database.connection.execute("PRAGMA integrity_check(20)"):
            if line != "ok":
                report(f"SQLite: {' '.join(str(line).split())}")
        if self._database.has_log:
            super()._check_structure(report)

    def _read_inbox(self, report: Callable[[str], None]) -> list[Command]:
        return super()._read_inbox(report) if self._database.has_log else []

    def size(self) -> int:
        """Bytes of the file and its write-ahead log."""
        return sum(map(_bytes_of, (self.path, self.path.with_name(f"{self.path.name}-wal"))))


def _bytes_of(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:  # it was removed
        return 0


def _check_path(path: Path, mode: Mode) -> None:
    if mode != "create" and not path.is_file():
        raise StoreMissing(f"{path}: no such store; check the path, or create one with felrec serve or felrec import")
    if not path.absolute().parent.is_dir():
        raise StoreError(f"{path}: there is no directory {path.parent}; create it, or choose another path")
    if mode != "read" and path.is_file() and path.stat().st_nlink > 1:
        raise StoreError(
            f"{path} is also a hard link elsewhere, which SQLite cannot serve safely; serve a copy, or remove the link"
        )
