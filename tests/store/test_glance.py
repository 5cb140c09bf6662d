"""A look at a store changes nothing and sees who it belongs to and whether it is in use."""

from __future__ import annotations

from pathlib import Path

import pytest

from felrec.errors import StoreDamaged, StoreError, StoreMismatch
from felrec.store.glance import Glance, glance
from felrec.store.schema import FORMAT
from felrec.store.sqlite import SqliteStore
from stores import made_up, open_engine, post

Files = dict[str, tuple[bytes, int, int]]


def files(folder: Path) -> Files:
    """Contents, times and modes of all files."""
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_mode) for path in found}


def test_it_sees_the_model_and_changes_nothing(tmp_path: Path) -> None:
    engine = open_engine(tmp_path / "s")
    post(engine, made_up(50))
    before = files(tmp_path)
    assert glance(tmp_path / "s") == Glance(in_use=True, identity=None)
    assert files(tmp_path) == before
    engine.close()
    before = files(tmp_path)
    seen = glance(tmp_path / "s")
    assert files(tmp_path) == before
    assert not seen.in_use
    assert seen.identity is not None
    assert seen.identity.model == engine.health().model


def test_it_sees_processes_that_share_a_store(tmp_path: Path) -> None:
    open_engine(tmp_path / "s").close()
    with SqliteStore(tmp_path / "s", shared=True):
        before = files(tmp_path)
        assert glance(tmp_path / "s").in_use
        assert files(tmp_path) == before
    assert not glance(tmp_path / "s").in_use


def test_a_file_that_is_no_store_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("not a store " * 1_000)
    before = files(tmp_path)
    with pytest.raises(StoreDamaged):
        glance(tmp_path / "text")
    with pytest.raises(StoreError):
        glance(tmp_path / "missing")
    assert files(tmp_path) == before


def test_a_newer_format_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_engine(tmp_path / "s").close()
    monkeypatch.setattr("felrec.store.glance.FORMAT", FORMAT - 1)
    with pytest.raises(StoreMismatch, match="newer felrec"):
        glance(tmp_path / "s")


def test_a_store_whose_writes_are_all_in_the_write_ahead_log(tmp_path: Path) -> None:
    (tmp_path / "s").touch()
    assert glance(tmp_path / "s") == Glance(in_use=False, identity=None)
