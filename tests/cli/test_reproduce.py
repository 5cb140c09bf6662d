"""`felrec reproduce`: names, errors, and resuming after a kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

import needs
from felrec.cli import main
from felrec.experiments import EXPERIMENTS

from .conftest import ENVIRONMENT, TINY, command, write_log

needs.package("matplotlib")


def test_list_names_every_experiment(invoke) -> None:  # type: ignore[no-untyped-def]
    lines = invoke("reproduce", "--list").stdout.splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(EXPERIMENTS)
    assert list(EXPERIMENTS) == [
        *("table-movielens", "table-twitch", "ablation", "over-time"),
        *("popularity-bias", "zero-shot", "protocols", "ablation-s", "cold-start"),
        *("ablation-ordinary", "identity"),
    ]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "--list"),
        (["table-netflix"], "choose one of table-movielens"),
        (["ablation"], "needs --data LOG and --out DIR"),
        (["ablation", "--data", "x.csv", "--out", "o", "--scale", "hours=3"], "--scale hours=3"),
        (["ablation", "--data", "x.csv", "--out", "o", "--models", "felrec-x"], "unknown model 'felrec-x'"),
        (["ablation", "--data", "x.csv", "--out", "o", "--set", "wdith=3"], "'wdith'"),
        (["ablation", "--data", "no-such.csv", "--out", "o"], "no-such.csv"),
    ],
)
def test_errors_are_one_line(capsys: pytest.CaptureFixture[str], arguments: list[str], says: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["reproduce", *arguments])
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert len(told.splitlines()) == 1
    assert says in told


def test_a_table_on_the_command_line(invoke, log: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    arguments = ["reproduce", "table-twitch", "--data", log, "--out", tmp_path / "out", "--runs", tmp_path / "runs"]
    done = invoke(*arguments, "--models", "popularity,felrec-q", "--scale", "epochs=1", "--scale", "events=1000", *TINY)
    assert done.exit_code == 0, done.output
    assert "scale: the newest 1,000 of the events, 1 epochs" in done.stdout
    assert f"wrote {tmp_path / 'out' / 'table-twitch.md'}" in done.stdout
    assert (tmp_path / "out" / "table-twitch.md").read_text() in done.stdout
    assert len(list((tmp_path / "runs").glob("log-*/*"))) == 2
    assert not (tmp_path / "out" / "runs").exists()


def test_after_a_kill_the_same_command_resumes(felrec, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    log = write_log(tmp_path / "log.csv", 700)
    arguments = [
        *("reproduce", "table-movielens", "--data", log, "--models", "felrec-q,felrec-p"),
        *("--scale", "epochs=1", *TINY, "--set", "checkpoint_seconds=0.01"),
    ]
    assert felrec(*arguments, "--out", tmp_path / "whole").returncode == 0
    out = tmp_path / "killed"
    with subprocess.Popen(
        command(*arguments, "--out", out), env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        kill_within(process, out, "felrec-p")
    before = {path: path.stat().st_mtime_ns for path in out.glob("runs/*/felrec-q*/best-*/*")}
    assert before
    done = felrec(*arguments, "--out", out)
    assert done.returncode == 0, done.stderr
    assert {line.split(":")[0] for line in done.stderr.splitlines()} == {"felrec-p"}  # the others were finished
    assert before == {path: path.stat().st_mtime_ns for path in before}
    rows = [json.loads((folder / "table-movielens.json").read_text())["rows"] for folder in (tmp_path / "whole", out)]
    partitions = [[row["partitions"] for row in found] for found in rows]
    assert partitions[0] == partitions[1]


def kill_within(process: subprocess.Popen[bytes], out: Path, model: str) -> None:
    """Kill -9 as soon as the model has a checkpoint within an epoch."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        for file in out.glob(f"runs/*/{model}*/manifest.json"):
            if manifest_of(file).get("resume", {}).get("step", 0) >= 2:
                os.kill(process.pid, signal.SIGKILL)
                process.wait()
                return
        time.sleep(0.002)
    raise AssertionError("it ended before it could be killed")


def manifest_of(file: Path) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads(file.read_text())
    return manifest
