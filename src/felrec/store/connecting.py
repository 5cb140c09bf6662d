"""Connections to a store file, and SQLite's errors as errors that say what to do."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from felrec.errors import StoreBusy, StoreDamaged, StoreError, StoreFull

WAIT = 10_000  # milliseconds to wait for the write of another process
FOREIGN = "{name} is not a felrec store, or its header is damaged; give another file, or restore a backup"
DAMAGED = "{name} is damaged ({what}); restore a backup, or rebuild the store from a backup with felrec replay"


def connect(path: Path) -> apsw.Connection:
    """An ordinary connection. SQLite creates files beside the store for it."""
    connection = apsw.Connection(str(path))
    connection.set_busy_timeout(WAIT)
    return connection


def wait_for_others(connection: apsw.Connection) -> None:
    """Let a connection wait for writes of other processes in steps of a millisecond.

    SQLite's own steps grow to a tenth of a second: a frequent writer would hardly ever let others in.
    """

    def again(attempts: int) -> bool:
        time.sleep(0.001)
        return attempts < WAIT

    connection.set_busy_handler(again)


def connect_read_only(path: Path) -> apsw.Connection:
    """A connection that writes no file at all, for a full or read-only disk. Nobody else may write meanwhile."""
    wal = path.resolve().with_name(f"{path.resolve().name}-wal")
    full = wal.is_file() and wal.stat().st_size > 0
    how = "mode=ro&readonly_shm=1" if full else "immutable=1"
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    return apsw.Connection(f"{path.resolve().as_uri()}?{how}", flags=flags)


@contextmanager
def translated(name: str) -> Iterator[None]:
    """Translate SQLite's errors."""
    try:
        yield
    except apsw.FullError:
        raise StoreFull(f"{name}: no space left; free some space, then write again") from None
    except apsw.NotADBError:
        raise StoreDamaged(FOREIGN.format(name=name)) from None
    except (apsw.BusyError, apsw.LockedError):
        raise StoreBusy(f"{name}: another process has been writing for {WAIT // 1000} s; stop it") from None
    except apsw.CantOpenError:
        raise StoreError(f"{name}: cannot be opened; check its permissions and those of its directory") from None
    except (apsw.ReadOnlyError, apsw.PermissionsError):
        raise StoreError(f"{name}: cannot be written; check its permissions and those of its directory") from None
    except apsw.IOError as error:
        if getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_SHMSIZE:  # shared memory is a file on that disk
            raise StoreFull(f"{name}: no space left; free some space, then write again") from None
        raise StoreError(f"{name}: the disk failed ({error}); check it, then write again") from None
    except apsw.ConnectionClosedError:
        raise StoreError(f"{name} is closed") from None
    except apsw.Error as error:
        raise StoreDamaged(DAMAGED.format(name=name, what=" ".join(str(error).split())[:120])) from None
