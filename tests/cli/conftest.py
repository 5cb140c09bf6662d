"""A small log and a small run, shared by the tests of the commands."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner, Result

from felrec.cli import app
from felrec.data.synthetic import synthetic_log

TINY = [
    *("--set", "width=8", "--set", "heads=2", "--set", "layers=1", "--set", "feed_forward=8"),
    *("--set", "history_length=8", "--set", "queue_size=64", "--set", "batch_size=64"),
]
Felrec = Callable[..., "subprocess.CompletedProcess[str]"]


def write_log(path: Path, events: int, seed: int = 3) -> Path:
    log = synthetic_log(events, n_users=60, n_items=80, seed=seed).log
    columns = {"user": log.user_ids.ids(log.users), "item": log.item_ids.ids(log.items), "timestamp": log.times}
    pl.DataFrame(columns).write_csv(path)
    return path


def command(*arguments: object) -> list[str]:
    """The command line of the real program, to run in its own process."""
    return [sys.executable, "-c", "from felrec.cli import main; main()", *map(str, arguments)]


ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "80"}


@pytest.fixture(scope="session")
def felrec() -> Felrec:
    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command(*arguments), env=ENVIRONMENT, text=True, capture_output=True, timeout=120)

    return run


@pytest.fixture(scope="session")
def invoke() -> Callable[..., Result]:
    def run(*arguments: object) -> Result:
        return CliRunner().invoke(app, list(map(str, arguments)), prog_name="felrec", catch_exceptions=False)

    return run


@pytest.fixture(scope="session")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_log(tmp_path_factory.mktemp("log") / "log.csv", 1_500)


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory, log: Path, invoke: Callable[..., Result]) -> Path:
    out = tmp_path_factory.mktemp("runs") / "q"
    result = invoke("train", log, "--model", "felrec-q", "--out", out, "--epochs", 2, *TINY)
    assert result.exit_code == 0, result.output
    return out
