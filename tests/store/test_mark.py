"""Acknowledged events that are missing are noticed: at the start, by verify, and by everything that reads."""

from __future__ import annotations

import logging
import os
import shutil
from pathlib import Path

import apsw
import pytest

from disks import flip, killed_copy
from felrec.errors import StoreDamaged
from felrec.store.protocol import Batch
from felrec.store.sqlite import SqliteStore
from small_stores import begun, one_block


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """A store as a kill leaves it: three blocks in the file, then two in the write-ahead log."""
    with begun(tmp_path / "s") as store:
        for n in range(3):
            store.commit(one_block(n))
        other = apsw.Connection(str(tmp_path / "s"))
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        other.close()
        for n in range(3, 5):
            store.commit(one_block(n))
        return killed_copy(tmp_path / "s", tmp_path / "killed")


def beside(store: Path, suffix: str) -> Path:
    return store.with_name(f"{store.name}{suffix}")


def test_after_a_kill_nothing_is_missing(killed: Path) -> None:
    with SqliteStore(killed, "read") as store:
        assert store.missing is None
        assert store.verify() == []
    with SqliteStore(killed, "write") as store:
        assert len(store.load().events) == 5


@pytest.mark.parametrize(("damage", "events"), [("flipped", 1), ("cut off", 1), ("removed", 2)])
def test_a_damaged_log_is_noticed(killed: Path, tmp_path: Path, damage: str, events: int) -> None:
    wal = beside(killed, "-wal")
    if damage == "removed":
        wal.unlink()
    elif damage == "flipped":
        flip(wal, wal.stat().st_size - 100)
    else:
        os.truncate(wal, wal.stat().st_size - 100)
    before = wal.read_bytes() if wal.exists() else b""
    what = f"{events} acknowledged change(s) with {events} event(s) are missing"
    for _ in range(2):
        with pytest.raises(StoreDamaged, match="--accept-loss") as refused:
            SqliteStore(killed, "write")
        assert what in str(refused.value)
    with SqliteStore(killed, "read") as store:
        assert store.verify() == [what]
        for refuses in (store.load, lambda: store.backup(tmp_path / "copy")):
            with pytest.raises(StoreDamaged, match="are missing"):
                refuses()
    assert wal.read_bytes() == before  # for whoever wants to look at it


def test_a_loss_can_be_accepted_and_is_logged(killed: Path, caplog: pytest.LogCaptureFixture) -> None:
    beside(killed, "-wal").unlink()
    with caplog.at_level(logging.WARNING), SqliteStore(killed, "write", accept_loss=True) as store:
        assert len(store.load().events) == 3
    assert "2 acknowledged change(s) with 2 event(s) are missing, which was accepted" in caplog.text
    with SqliteStore(killed, "write") as store:
        store.commit(one_block(3))
    with SqliteStore(killed, "read") as store:
        assert store.verify() == []


def test_an_older_copy_is_noticed(tmp_path: Path) -> None:
    with begun(tmp_path / "s") as store:
        store.commit(one_block())
        store.backup(tmp_path / "older")
        store.commit(one_block(1))
    shutil.copy(tmp_path / "older", tmp_path / "s")
    with pytest.raises(StoreDamaged, match=r"1 event\(s\) are missing.*an older copy was put in its place"):
        SqliteStore(tmp_path / "s")
    beside(tmp_path / "s", "-mark").unlink()  # as the steps to restore a backup say
    with SqliteStore(tmp_path / "s") as store:
        assert len(store.load().events) == 1


@pytest.mark.parametrize("which", ["a newer copy", "another store", "a store of format 1"])
def test_other_stores_may_take_its_place(tmp_path: Path, which: str) -> None:
    with begun(tmp_path / "s") as store:
        store.commit(one_block())
        store.backup(tmp_path / "other")
    if which == "a newer copy":
        with SqliteStore(tmp_path / "other") as newer:
            newer.commit(one_block(1))
    else:
        (tmp_path / "other").unlink()
        begun(tmp_path / "other").close()
    if which == "a store of format 1":
        connection = apsw.Connection(str(tmp_path / "other"))
        connection.execute("DELETE FROM meta WHERE name = 'store'; PRAGMA user_version = 1")
        connection.execute(
            "DROP TABLE pages; DROP TABLE saves; DROP TABLE inbox; DROP TABLE changes;"
            "CREATE TABLE state (row INTEGER PRIMARY KEY, value, crc)"
        )
        connection.close()
    shutil.copy(tmp_path / "other", tmp_path / "s")
    SqliteStore(tmp_path / "s").close()


def test_a_reader_beside_a_writer_sees_no_loss(tmp_path: Path) -> None:
    with begun(tmp_path / "s") as store:
        for n in range(20):
            store.commit(one_block(n))
            with SqliteStore(tmp_path / "s", "read") as reader:
                assert reader.missing is None


@pytest.mark.parametrize("content", [b"", b"\0" * 128, b"felrec-mark x 1 2 00000000", b"\xff" * 500])
def test_a_mark_that_cannot_be_read_refuses_nothing(tmp_path: Path, content: bytes) -> None:
    with begun(tmp_path / "s") as store:
        store.commit(one_block())
    beside(tmp_path / "s", "-mark").write_bytes(content)
    with SqliteStore(tmp_path / "s") as store:
        store.commit(Batch(1, 1, notes={"a": "b"}))
    (tmp_path / "s").unlink()
    with pytest.raises(StoreDamaged, match="the file is gone"):  # the mark was repaired
        SqliteStore(tmp_path / "s")


def test_without_room_for_a_mark_the_store_is_written_all_the_same(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    beside(tmp_path / "s", "-mark").mkdir()  # nothing can be written there
    with begun(tmp_path / "s") as store:
        store.commit(one_block())
        assert len(store.load().events) == 1
    assert caplog.text.count("might not be noticed") == 1
