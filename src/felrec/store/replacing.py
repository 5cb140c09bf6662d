"""Put a finished store file in the place of another one."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from felrec.errors import StoreBusy

_COMPANIONS = "-wal", "-shm"  # of an open store; those of a closed one are empty or missing


def unfinished_name(path: Path) -> Path:
    """Where a store is written that will take the place of `path`."""
    return path.with_name(f".{path.name}.new")


def make_way(path: Path, new: Path, keep: Path | None = None) -> None:
    """Give the new file the owner of the old one, keep that under another name, and remove what belongs to it alone.

    Then `new` can be renamed to `path`. No engine may have either of them open.
    """
    log = path.with_name(f"{path.name}-wal")
    if log.exists() and log.stat().st_size:
        raise StoreBusy(f"{path} was written meanwhile, so nothing was changed; stop every process that uses it")
    for end in _COMPANIONS:
        path.with_name(f"{path.name}{end}").unlink(missing_ok=True)
    owner = path.stat()
    new.chmod(owner.st_mode)
    with suppress(PermissionError, AttributeError):  # the service may run as another user than this command
        os.chown(new, owner.st_uid, owner.st_gid)
    if keep is not None:
        os.link(path, keep)


def remove_store(path: Path) -> None:
    """Remove a store and the files beside it."""
    for end in ("", *_COMPANIONS, "-lease", "-mark"):
        with suppress(OSError):
            path.with_name(f"{path.name}{end}").unlink()
