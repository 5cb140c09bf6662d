"""Run directories: nothing of others is touched, and only one process trains in one."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from felrec.errors import CheckpointError
from felrec.training.checkpoint import RunDirectory, write_tensors


@pytest.mark.parametrize("name", ["best", "best-0003", "resume-0001-0000200", "items.parquet", "model.json"])
def test_what_a_run_would_replace_is_not_touched(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(CheckpointError, match=f"contains {name}, which a run would overwrite; choose another --out"):
        RunDirectory.create(tmp_path, {})
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_what_has_another_name_stays(tmp_path: Path) -> None:
    for name in ("best-friends", "resume-drafts", "best-0001-notes"):
        (tmp_path / name).mkdir()
    run = RunDirectory.create(tmp_path, {})
    (tmp_path / "best-0001").mkdir()
    (tmp_path / "resume-0000-0000001-again").mkdir()
    (tmp_path / ".best-0002.new").mkdir()
    (tmp_path / ".manifest.json.1234.new").touch()
    with run.alone():
        pass
    assert not list(tmp_path.glob(".*.new"))
    left = sorted(entry.name for entry in tmp_path.iterdir() if entry.is_dir())
    assert left == ["best-0001-notes", "best-friends", "resume-drafts"]


def test_one_process_at_a_time_trains_in_a_run(tmp_path: Path) -> None:
    run, other = RunDirectory.create(tmp_path, {}), RunDirectory.open(tmp_path)
    with run.alone():
        run.update({"epoch": 1})
        with pytest.raises(CheckpointError, match="another process is training in"), other.alone():
            pass
    with other.alone():
        assert other.manifest["epoch"] == 1  # as the first one left it


def test_a_file_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"cannot be written .*; free space, then use --resume"):
        write_tensors({"a": torch.zeros(2)}, tmp_path / "no folder" / "a.safetensors")


def test_a_finished_run_needs_no_lock(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path, {"finished": True})
    with run.alone():
        assert not (tmp_path / ".lock").exists()


def test_a_run_that_cannot_be_written_to_is_said(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "run", {})
    (tmp_path / "run").rename(tmp_path / "moved")
    with pytest.raises(CheckpointError, match=r"cannot be written to .*; check its permissions"), run.alone():
        pass
