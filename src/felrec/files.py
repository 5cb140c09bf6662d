"""Write files and folders atomically and durably."""

from __future__ import annotations

import os
import secrets
import shutil
from contextlib import suppress
from pathlib import Path


def write_atomically(path: Path, text: str, *, private: bool = False) -> None:
    """Replace a file atomically. A private file is readable only by its owner, who stays the same."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.new")
    try:
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o666)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        if private and path.exists():  # the service that reads it may run as a different user
            owner = path.stat()
            with suppress(PermissionError):
                os.chown(beside, owner.st_uid, owner.st_gid)
        publish(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def publish(finished: Path, path: Path) -> None:
    """Sync a finished file or folder to disk, then rename it to `path`."""
    for entry in (finished, *finished.rglob("*")):
        _sync(entry)
    finished.replace(path)
    _sync(path.parent)


def remove_folder(folder: Path) -> None:
    """Remove a folder atomically: if the process is killed, `folder` is either complete or gone."""
    aside = folder.with_name(f".{folder.name}")
    shutil.rmtree(aside, ignore_errors=True)
    folder.rename(aside)
    shutil.rmtree(aside)


def _sync(path: Path) -> None:
    """Wait until a file, or the entries of a folder, are on disk."""
    windows = os.name == "nt"  # which cannot open directories, and syncs only writable files
    if windows and path.is_dir():
        return
    descriptor = os.open(path, os.O_RDWR if windows else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
