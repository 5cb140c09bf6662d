"""Small disks that really fill up, and stores as a kill leaves them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import needs


@contextmanager
def small_disk(folder: Path, size: str = "2m") -> Iterator[Path]:
    """A file system of its own in memory; needs the right to mount one."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        needs.missing("mounting a small disk needs root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(disk: Path) -> Path:
    """A file that leaves no room on a disk."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4_096))
        except OSError:
            return filler


def read_only(disk: Path, on: bool) -> None:
    """Make a mounted disk read-only, or writable again."""
    subprocess.run(["mount", "-o", f"remount,{'ro' if on else 'rw'}", str(disk)], check=True)


def killed_copy(store: Path, to: Path) -> Path:
    """The files of a store that is in use, as a kill at this moment would leave them."""
    to.mkdir()
    for suffix in ("", "-wal", "-shm", "-mark"):
        file = store.with_name(f"{store.name}{suffix}")
        if file.exists():
            shutil.copy(file, to)
    return to / store.name


def flip(file: Path, place: int) -> None:
    """Change one byte."""
    content = bytearray(file.read_bytes())
    content[place] ^= 0x5A
    file.write_bytes(content)
