"""Look at a store without taking it from its engine: nothing on disk changes."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import apsw

from felrec.errors import StoreDamaged, StoreError, StoreMismatch
from felrec.store.protocol import Identity
from felrec.store.reading import read_identity, read_meta
from felrec.store.schema import APPLICATION, FORMAT


@dataclass(frozen=True)
class Glance:
    """What can be seen of a store from outside."""

    in_use: bool  # by an engine
    identity: Identity | None  # of its model; None while the write-ahead log has all there is, or nothing was written


def glance(path: Path) -> Glance:
    """Look at an existing store. StoreError and its kinds if no engine could open it."""
    if _is_locked(Path(f"{path.resolve()}-lease")):
        return Glance(in_use=True, identity=None)  # its pages may change while they are read
    try:
        connection = _without_writing(path, "immutable=1")
        try:
            return Glance(in_use=False, identity=_identity(path, connection))
        finally:
            connection.close()
    except apsw.CantOpenError:
        raise StoreError(f"{path}: cannot be opened; check its permissions and those of its directory") from None
    except (apsw.Error, ValueError, KeyError, TypeError):
        raise StoreDamaged(f"{path} is damaged or not a felrec store; check it with felrec verify") from None


def _identity(path: Path, connection: apsw.Connection) -> Identity | None:
    if not connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()[0][0]:
        return None
    application, version = (
        int(str(connection.execute(f"PRAGMA {name}").fetchall()[0][0])) for name in ("application_id", "user_version")
    )
    if application != APPLICATION:
        raise StoreDamaged(f"{path} is not a felrec store; give another file")
    if version > FORMAT:
        raise StoreMismatch(f"{path} was written by a newer felrec (format {version}); upgrade felrec")

    def damaged(what: str) -> NoReturn:
        raise StoreDamaged(f"{path} is damaged ({what}); restore a backup")

    meta = read_meta(connection, damaged)
    return read_identity(meta) if "identity" in meta else None


def _is_locked(lease: Path) -> bool:
    """Whether an engine has locked the store, or several share it. To find out it locks it for a moment, if it may."""
    if not lease.exists():
        return False
    writable = os.access(lease, os.W_OK)
    try:
        connection = _without_writing(lease, "mode=rw" if writable else "mode=ro")
        try:
            look = "PRAGMA journal_mode=MEMORY; BEGIN EXCLUSIVE" if writable else "SELECT count(*) FROM sqlite_schema"
            connection.execute(look).fetchall()
        finally:
            connection.close()
    except apsw.BusyError:
        return True
    except apsw.Error:
        raise StoreError(f"{lease}: cannot be opened; check its permissions") from None
    return False


def _without_writing(path: Path, how: str) -> apsw.Connection:
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI  # `how` can only restrict it
    return apsw.Connection(f"{path.absolute().as_uri()}?{how}", flags=flags)
