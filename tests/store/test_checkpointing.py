"""Checkpoints have a thread of their own, and keep the write-ahead log short."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from felrec.data.events import Events
from felrec.store import checkpointing
from felrec.store.protocol import Batch
from small_stores import begun, one_block
from stores import contents_of

LARGE = Batch(1, 1, blocks=[Events.of(*np.zeros((3, 4_000)))])  # 64 kB


def wal(path: Path) -> int:
    return path.with_name(f"{path.name}-wal").stat().st_size


def test_the_log_stays_short_under_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpointing, "_ENOUGH", 32)
    monkeypatch.setattr(checkpointing, "_LARGE", 64)
    with begun(tmp_path / "s") as store:
        store.commit(one_block())
        until, commits = time.monotonic() + 60, 0
        while (commits < 100 or wal(tmp_path / "s") > commits * 32_000) and time.monotonic() < until:
            store.commit(LARGE)
            commits += 1
            time.sleep(0.002)
        assert wal(tmp_path / "s") <= commits * 32_000  # half of what was written
        assert (tmp_path / "s").stat().st_size > commits * 32_000
        assert len(contents_of(tmp_path / "s").blocks) == commits + 2


def test_a_commit_does_not_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpointing, "_ENOUGH", 1 << 30)
    with begun(tmp_path / "s") as store:
        store.commit(one_block())
        before = (tmp_path / "s").stat().st_size
        for _ in range(100):  # SQLite would checkpoint after 1,000 pages
            store.commit(LARGE)
        assert (tmp_path / "s").stat().st_size == before
        assert wal(tmp_path / "s") > 100 * 64_000
    assert len(contents_of(tmp_path / "s").blocks) == 102
