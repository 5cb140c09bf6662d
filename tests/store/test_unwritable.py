"""A disk that is full or read-only at the start: the store is read, and written once that is possible."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from disks import fill, killed_copy, read_only, small_disk
from felrec.errors import StoreError, StoreFull
from felrec.store.sqlite import SqliteStore
from small_stores import begun, one_block


def committed_at_last(store: SqliteStore) -> None:
    """Write once the store tries again, which it does once a second."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            store.commit(one_block(1))
        except StoreError:
            time.sleep(0.05)
        else:
            return
    pytest.fail("it is never written again")


@pytest.mark.parametrize("killed", [True, False], ids=["after a kill", "after a stop"])
def test_a_store_on_a_full_disk_is_read_and_later_written(tmp_path: Path, killed: bool) -> None:
    with begun(tmp_path / "s") as store:
        store.commit(one_block())
        copy = killed_copy(tmp_path / "s", tmp_path / "killed")
    with small_disk(tmp_path / "disk") as disk:
        for file in copy.parent.iterdir() if killed else [tmp_path / "s", tmp_path / "s-mark"]:
            (disk / file.name).write_bytes(file.read_bytes())
        filler = fill(disk)
        with SqliteStore(disk / "s") as store:
            assert isinstance(store.trouble(), StoreFull)
            for _ in range(3):
                with pytest.raises(StoreFull, match="no space left"):
                    store.commit(one_block(1))
            assert len(store.load().events) == 1
            assert store.answer(b"a key") is None
            filler.unlink()
            committed_at_last(store)
            assert store.trouble() is None
        with SqliteStore(disk / "s", "write") as store:
            assert len(store.load().events) == 2


LIMITED = """
import resource, sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from felrec.errors import StoreFull
from felrec.store.sqlite import SqliteStore
from small_stores import one_block
resource.setrlimit(resource.RLIMIT_FSIZE, (8_192, resource.RLIM_INFINITY))
with SqliteStore(Path(sys.argv[1])) as store:
    print(type(store.trouble()).__name__, len(store.load().events))
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    store.commit(one_block(1))
    print(store.trouble(), len(store.load().events))
"""


def test_without_a_disk_of_its_own(tmp_path: Path) -> None:
    """The same with a limit of the size of files, which every user can set."""
    with begun(tmp_path / "s") as store:
        store.commit(one_block())
    command = [sys.executable, "-c", LIMITED, str(tmp_path / "s"), str(Path(__file__).parents[1])]
    done = subprocess.run(command, text=True, capture_output=True)
    assert done.stdout == "StoreFull 1\nNone 2\n", done.stderr


def test_a_new_store_needs_room(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        fill(disk)
        with pytest.raises(StoreFull, match="no space left"):
            begun(disk / "s")


@pytest.mark.parametrize("killed", [True, False], ids=["after a kill", "after a stop"])
def test_a_store_on_a_read_only_disk_is_read_and_later_written(tmp_path: Path, killed: bool) -> None:
    with small_disk(tmp_path / "disk") as disk:
        with begun(tmp_path / "s") as store:
            store.commit(one_block())
            copy = killed_copy(tmp_path / "s", tmp_path / "killed")
        for file in copy.parent.iterdir() if killed else [tmp_path / "s", tmp_path / "s-mark"]:
            (disk / file.name).write_bytes(file.read_bytes())
        read_only(disk, True)
        with SqliteStore(disk / "s") as store:
            with pytest.raises(StoreError, match="cannot be"):
                store.commit(one_block(1))
            assert len(store.load().events) == 1
            read_only(disk, False)
            committed_at_last(store)
            assert len(store.load().events) == 2


def test_a_backup_that_finds_no_room_names_the_copy(tmp_path: Path) -> None:
    with begun(tmp_path / "s") as store, small_disk(tmp_path / "disk") as disk:
        filler = fill(disk)
        os.truncate(filler, filler.stat().st_size - 20_000)
        with pytest.raises(StoreFull, match=r"copy: no space left"):
            store.backup(disk / "copy")
        assert list(disk.iterdir()) == [filler]
