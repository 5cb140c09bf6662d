"""Files and folders that appear whole or not at all, and stay after a power cut."""

from __future__ import annotations

import os
import secrets
import shutil
from contextlib import suppress
from pathlib import Path


def write_atomically(path: Path, text: str, *, private: bool = False) -> None:
    """Replace a file in one step. A private one is readable by its owner alone, who stays the same."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.new")
    try:
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o666)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        if private and path.exists():  # the service that reads it may run as another user
            owner = path.stat()
            with suppress(PermissionError):
                os.chown(beside, owner.st_uid, owner.st_gid)
        publish(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def publish(finished: Path, path: Path) -> None:
    """Give a finished file or folder its name, once all of it is on the disk."""
    for entry in (finished, *finished.rglob("*")):
        _sync(entry)
    finished.replace(path)
    _sync(path.parent)


def remove_folder(folder: Path) -> None:
    """Remove a folder in one step: a killed process leaves all of it under its name, or nothing."""
    aside = folder.with_name(f".{folder.name}")
    shutil.rmtree(aside, ignore_errors=True)
    folder.rename(aside)
    shutil.rmtree(aside)


def _sync(path: Path) -> None:
    """Wait until a file, or the list of names in a folder, is on the disk."""
    windows = os.name == "nt"  # where a directory cannot be opened, and only what may be written can be synced
    if windows and path.is_dir():
        return
    descriptor = os.open(path, os.O_RDWR if windows else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
