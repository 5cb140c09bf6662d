"""Logs with rows that cannot be read, on the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from typer.testing import Result

from .conftest import Felrec

Invoke = Callable[..., Result]


@pytest.fixture
def rough(log: Path, tmp_path: Path) -> Path:
    """A log of 1,500 rows, two of which cannot be read, and three with ids that a service refuses."""
    lines = log.read_text().splitlines()
    lines[10], lines[20] = ",1,2", "1,2,soon"
    for row in (30, 40, 50):
        lines[row] = f"{lines[row].split(',')[0]},{'x' * 300},{lines[row].split(',')[2]}"
    path = tmp_path / "rough.csv"
    path.write_text("\n".join(lines))
    return path


def test_every_reader_of_logs_can_leave_rows_out(rough: Path, tmp_path: Path, invoke: Invoke) -> None:
    rejected, run = tmp_path / "rejected.csv", tmp_path / "run"
    shown = invoke("inspect", rough, "--bad-rows", "skip", "--rejected", rejected)
    assert shown.stdout.startswith("rows             1,498\n")
    assert shown.stderr.splitlines()[0] == f"{rough}: left out 2 of 1,500 rows"
    assert "  row 20: the time 'soon'" in shown.stderr
    assert pl.read_csv(rejected)["row"].to_list() == [10, 20]
    trained = invoke("train", rough, "--model", "popularity", "--out", run, "--bad-rows", "skip", "--max-bad", "0.01")
    assert f"felrec evaluate {run} {rough} --bad-rows skip --max-bad 0.01" in trained.stdout
    assert "popularity" in invoke("evaluate", run, rough, "--bad-rows", "skip").stdout


def test_import_also_leaves_out_ids_that_a_service_refuses(
    rough: Path, tmp_path: Path, invoke: Invoke, felrec: Felrec
) -> None:
    path = tmp_path / "store.sqlite"
    refused = felrec("import", rough, "--store", path, "--bad-rows", "refuse")
    assert refused.returncode == 2
    assert "--bad-rows skip" in refused.stderr
    done = invoke("import", rough, "--store", path, "--bad-rows", "skip")
    assert "left out 3 events with invalid ids: item: longer than 256 characters" in done.stderr
    assert "1,495 events ingested" in done.stdout
    again = invoke("import", rough, "--store", path, "--bad-rows", "skip")
    assert "0 events ingested, 1,495 already there" in again.stdout
