"""Unpack ZIP archives from untrusted sources."""

from __future__ import annotations

import errno
import shutil
import stat
import zipfile
from pathlib import Path

from felrec.errors import FetchError
from felrec.files import publish


def unzip(archive: Path, folder: Path) -> None:
    """Unpack `archive` into `folder`, which is created complete or not at all; a single top-level folder is removed."""
    staging = folder.with_name(f".{folder.name}.unzip")
    shutil.rmtree(staging, ignore_errors=True)
    try:
        with zipfile.ZipFile(archive) as opened:
            _check(opened, archive.name, staging.parent)
            opened.extractall(staging)
        top = list(staging.iterdir())
        publish(top[0] if len(top) == 1 and top[0].is_dir() else staging, folder)
    except (zipfile.BadZipFile, EOFError) as error:
        raise FetchError(f"{archive.name} is a damaged ZIP archive ({error}); fetch it again") from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _check(opened: zipfile.ZipFile, name: str, parent: Path) -> None:
    for member in opened.infolist():
        parts = Path(member.filename.replace("\\", "/"))
        if parts.is_absolute() or ".." in parts.parts or stat.S_ISLNK(member.external_attr >> 16):
            raise FetchError(f"{name} holds {member.filename!r}, which points outside its folder; do not use it")
    needed = sum(member.file_size for member in opened.infolist())
    free = shutil.disk_usage(parent).free
    if needed > free:
        raise OSError(errno.ENOSPC, f"{name} needs {needed:,} bytes, {free:,} are free")
