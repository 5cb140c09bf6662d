"""Backups that were killed: what they leave is found, and removed by the next one."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from felrec.store.copying import unfinished_copy
from felrec.store.file_locks import lock_beside
from small_stores import begun, one_block

UNIT = Path(__file__).resolve().parents[2] / "deploy" / "felrec-backup.service"

KILLED = """
import os, sys
from pathlib import Path
from felrec.store.copying import unfinished_copy
with unfinished_copy(Path(sys.argv[1])) as unfinished:
    unfinished.write_bytes(b"half of it, with the id of a user")
    os.kill(os.getpid(), 9)
"""


def kill_a_backup(path: Path) -> None:
    subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)


def test_what_a_killed_backup_left_is_removed_by_the_next_with_any_name(tmp_path: Path) -> None:
    folder = tmp_path / "backup"
    folder.mkdir()
    kill_a_backup(folder / "store-20261117T000000Z.sqlite")
    kill_a_backup(folder / "monday")
    assert any(b"half of it" in file.read_bytes() for file in folder.iterdir())
    (folder / "notes.txt").write_text("mine")
    with begun(tmp_path / "s") as store:
        store.commit(one_block())
        store.backup(folder / "store-20261118T000000Z.sqlite")
    assert {file.name for file in folder.iterdir()} == {"notes.txt", "store-20261118T000000Z.sqlite"}


def test_a_backup_that_runs_now_is_left_alone(tmp_path: Path) -> None:
    with begun(tmp_path / "s") as store, unfinished_copy(tmp_path / "one") as running:
        running.write_bytes(b"half of it")
        files = set(tmp_path.glob("one*"))
        store.backup(tmp_path / "other")
        assert set(tmp_path.glob("one*")) == files  # also its lock
        assert running.read_bytes() == b"half of it"
    assert {file.name for file in tmp_path.glob("o*")} == {"other"}


def test_the_timer_deletes_what_a_killed_backup_left(tmp_path: Path) -> None:
    kill_a_backup(tmp_path / "store-20261117T000000Z.sqlite")
    expiry = re.search(r"ExecStartPost=/usr/bin/find \S+ (-name '[^']+')", UNIT.read_text())
    assert expiry is not None
    pattern = expiry[1].split("'")[1]
    personal = [file for file in tmp_path.iterdir() if b"id of a user" in file.read_bytes()]
    assert personal
    assert all(file.match(pattern) for file in personal)


def test_the_lock_of_a_copy_is_released(tmp_path: Path) -> None:
    with unfinished_copy(tmp_path / "one") as unfinished:
        pass
    lock_beside(unfinished).close()
