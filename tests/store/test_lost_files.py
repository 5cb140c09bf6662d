"""Files that are removed, replaced or reached by another name while a store is open."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from felrec.errors import StoreBusy, StoreDamaged, StoreError, StoreLost
from felrec.store.sqlite import SqliteStore
from small_stores import begun, one_block

linux = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere only the file beside the store is locked")


def remove(path: Path) -> None:
    path.unlink()


def replace(path: Path) -> None:
    path.with_name("other").write_bytes(path.read_bytes())
    path.with_name("other").replace(path)


@pytest.mark.parametrize("how", [remove, replace])
@pytest.mark.parametrize("suffix", ["", "-wal", "-shm"], ids=["store", "wal", "shm"])
def test_nothing_is_acknowledged_once_a_file_is_gone(tmp_path: Path, how: Callable[[Path], None], suffix: str) -> None:
    with begun(tmp_path / "s") as store:
        store.commit(one_block())
        assert store.trouble() is None
        how(tmp_path / f"s{suffix}")
        assert isinstance(store.trouble(), StoreLost)
        with pytest.raises(StoreLost, match=rf"s{suffix} was {how.__name__}d while it was in use.*then restart"):
            store.commit(one_block(1))


def test_a_store_that_is_moved_away_and_back_goes_on(tmp_path: Path) -> None:
    with begun(tmp_path / "s") as store:
        (tmp_path / "s").rename(tmp_path / "t")
        with pytest.raises(StoreLost):
            store.commit(one_block())
        (tmp_path / "t").rename(tmp_path / "s")
        store.commit(one_block())
        assert store.trouble() is None
        assert len(store.load().events) == 1


def test_what_was_committed_before_the_log_was_removed_is_saved_at_the_end(tmp_path: Path) -> None:
    with begun(tmp_path / "s") as store:
        store.commit(one_block())
        (tmp_path / "s-wal").unlink()
    with SqliteStore(tmp_path / "s", "write") as store:
        assert len(store.load().events) == 1


def test_an_engine_that_lost_its_file_leaves_those_of_the_next_alone(tmp_path: Path) -> None:
    first = begun(tmp_path / "s")
    first.commit(one_block())
    for file in tmp_path.iterdir():
        file.unlink()
    with begun(tmp_path / "s") as second:
        second.commit(one_block())
        first.close()
        second.commit(one_block(1))
        assert second.trouble() is None
    with SqliteStore(tmp_path / "s", "write") as store:
        assert len(store.load().events) == 2


def test_a_store_that_disappeared_is_not_begun_anew(tmp_path: Path) -> None:
    with begun(tmp_path / "s") as store:
        store.commit(one_block())
    (tmp_path / "s").unlink()
    with pytest.raises(
        StoreDamaged, match=r"1 acknowledged change\(s\) with 1 event\(s\) are missing: the file is gone"
    ):
        SqliteStore(tmp_path / "s")
    assert not (tmp_path / "s").exists()
    (tmp_path / "s-mark").unlink()
    begun(tmp_path / "s").close()


def test_a_new_store_without_events_may_be_deleted(tmp_path: Path) -> None:
    begun(tmp_path / "s").close()
    (tmp_path / "s").unlink()
    begun(tmp_path / "s").close()


@linux
def test_another_name_is_no_way_around_the_lock(tmp_path: Path) -> None:
    with begun(tmp_path / "s") as store:
        (tmp_path / "symbolic").symlink_to("s")
        with pytest.raises(StoreBusy, match="in use by another engine"):
            SqliteStore(tmp_path / "symbolic")
        (tmp_path / "s-lease").unlink()
        for name in ("s", "symbolic"):
            with pytest.raises(StoreBusy, match="in use by another engine"):
                SqliteStore(tmp_path / name)
        os.link(tmp_path / "s", tmp_path / "hard")
        with pytest.raises(StoreError, match="hard link"):
            SqliteStore(tmp_path / "hard")
        store.commit(one_block())
        (tmp_path / "hard").unlink()
    with SqliteStore(tmp_path / "symbolic", "write") as store:
        assert len(store.load().events) == 1
        store.commit(one_block(1))
        (tmp_path / "symbolic").unlink()
        with pytest.raises(StoreLost, match="symbolic was removed"):
            store.commit(one_block(2))


@linux
def test_another_process_is_refused_without_the_file_beside_the_store(tmp_path: Path) -> None:
    """And that refusal takes no lock away from the engine that runs."""
    opening = f"SqliteStore(Path({str(tmp_path / 's')!r}))"
    code = f"from pathlib import Path; from felrec.store.sqlite import SqliteStore; {opening}"
    with begun(tmp_path / "s") as store:
        (tmp_path / "s-lease").unlink()
        done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True)
        assert "StoreBusy" in done.stderr
        store.commit(one_block())
    with SqliteStore(tmp_path / "s", "read") as store:
        assert len(store.load().events) == 1
