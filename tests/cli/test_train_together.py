"""`torchrun -m felrec train`: resuming with another number of processes, errors, and processes that end."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from torchrun import ENVIRONMENT, run, torchrun

from .conftest import TINY, write_log
from .test_train import manifest_of

LONGER = [*TINY, "--set", "history_length=64", "--set", "batch_size=128", "--set", "checkpoint_seconds=0.01"]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_log(tmp_path_factory.mktemp("log") / "log.csv", 2_400)


def train(log: Path, out: Path, *more: object, model: str = "felrec-q") -> list[object]:
    return ["-m", "felrec", "train", log, "--model", model, "--out", out, "--epochs", 2, *LONGER, *more]


def until_within_an_epoch(process: subprocess.Popen[str], out: Path) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        if (out / "manifest.json").exists() and manifest_of(out).get("resume", {}).get("step", 0) >= 3:
            return
        time.sleep(0.002)
    raise AssertionError("training ended before it could be interrupted")


def interrupted(command: list[str], out: Path, interrupt: Callable[[int], None]) -> tuple[int, str]:
    """Interrupt a training within an epoch; returns its exit code and what it said."""
    with subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True) as process:
        until_within_an_epoch(process, out)
        interrupt(process.pid)
        _, errors = process.communicate(timeout=120)
    assert not manifest_of(out)["finished"]
    return process.returncode, errors


def test_a_run_continues_with_another_number_of_processes(log: Path, tmp_path: Path) -> None:
    whole, out = tmp_path / "whole", tmp_path / "out"
    assert run([sys.executable, *map(str, train(log, whole))]).returncode == 0
    _, errors = interrupted(torchrun(2, *train(log, out)), out, lambda pid: os.kill(pid, signal.SIGINT))
    said = [line for line in errors.splitlines() if line.startswith("interrupted")]
    assert len(said) == 1
    assert said[0].startswith(f"interrupted; continue with torchrun … -m felrec train {log}")
    shutil.copytree(out, tmp_path / "with 3")
    for command, to in (([sys.executable], out), (torchrun(3), tmp_path / "with 3")):
        done = run([*command, *map(str, train(log, to, "--resume"))])
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("felrec-q is in") == 1
        assert manifest_of(to)["best"]["sha256"] == manifest_of(whole)["best"]["sha256"]
        assert manifest_of(to)["epochs"] == manifest_of(whole)["epochs"]


def test_when_one_process_is_killed_all_end(log: Path, tmp_path: Path) -> None:
    workers: list[str] = []

    def kill_one(pid: int) -> None:
        workers.extend(Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
        os.kill(int(workers[1]), signal.SIGKILL)

    code, errors = interrupted(torchrun(2, *train(log, tmp_path / "out")), tmp_path / "out", kill_one)
    assert code != 0
    assert "SIGKILL" in errors
    assert len(workers) == 2
    assert not any(Path("/proc", worker).exists() for worker in workers)


@pytest.mark.parametrize(
    ("model", "settings", "line"),
    [
        ("bpr-mf", [], "felrec: bpr-mf cannot be trained by several processes; run felrec train without torchrun"),
        ("popularity", [], "felrec: popularity cannot be trained by several processes; run felrec train without"),
        ("felrec-s", ["--set", "batch_size=2"], "felrec: 3 processes cannot share batches of 2 events; start fewer"),
    ],
)
def test_what_cannot_be_divided(log: Path, tmp_path: Path, model: str, settings: list[str], line: str) -> None:
    out = tmp_path / "out"
    done = run(torchrun(3, "-m", "felrec", "train", log, "--model", model, "--out", out, *settings))
    assert done.returncode != 0
    assert line in done.stderr
    assert not out.exists()


def test_processes_that_read_different_logs(log: Path, tmp_path: Path) -> None:
    shutil.copy(log, tmp_path / "0.csv")
    write_log(tmp_path / "1.csv", 2_000)
    command = f"exec {sys.executable} -m felrec train {tmp_path}/$RANK.csv --out {tmp_path}/out"
    done = run(torchrun(2, "--no-python", "sh", "-c", command))
    assert done.returncode != 0
    # Both say so, and their lines may run into each other.
    assert "the processes do not train the same: process 1 has another log; start all with" in done.stderr
    assert not (tmp_path / "out").exists()
