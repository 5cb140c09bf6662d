"""Training from the command line, and resuming after an interruption."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

import needs
from felrec.cli import options
from felrec.errors import ConfigError

from .conftest import ENVIRONMENT, TINY, command, write_log


def manifest_of(out: Path) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads((out / "manifest.json").read_text())
    return manifest


def test_one_plain_line_an_epoch_where_there_is_no_terminal(felrec, log: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    done = felrec("train", log, "--model", "felrec-p", "--out", tmp_path / "p", "--epochs", 2, *TINY)
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    assert [line.split("  ")[0] for line in lines] == ["felrec-p: epoch 1/2", "felrec-p: epoch 2/2"]
    record = manifest_of(tmp_path / "p")["epochs"][0]
    assert f"loss {record['loss']:.3f}" in lines[0]
    assert f"rank {record['rank']:.3f}" in lines[0]
    assert "\x1b" not in done.stderr + done.stdout
    assert f"felrec evaluate {tmp_path / 'p'} {log}" in done.stdout


def test_settings_come_from_file_then_set_then_options(invoke, log: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    config = tmp_path / "c.toml"
    config.write_text("[model]\nwidth = 4\nheads = 2\nlayers = 2\n[training]\nepochs = 7\nseed = 5\n")
    arguments = ["--config", config, *TINY, "--epochs", 1]
    assert invoke("train", log, "--model", "felrec-q", "--out", tmp_path / "q", *arguments).exit_code == 0
    manifest = manifest_of(tmp_path / "q")
    assert (manifest["settings"]["width"], manifest["settings"]["layers"]) == (8, 1)
    assert (manifest["training"]["epochs"], manifest["training"]["seed"]) == (1, 5)


def test_a_recipe_sets_what_set_does_not(invoke, log: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    arguments = ["--model", "felrec-q", "--recipe", "ordinary", *TINY, "--epochs", 1]
    done = invoke("train", log, "--out", tmp_path / "q", *arguments)
    assert done.exit_code == 0, done.output
    manifest = manifest_of(tmp_path / "q")
    assert (manifest["settings"]["width"], manifest["settings"]["cache"]) == (8, "seeded")
    assert manifest["training"]["optimizer"] == "adamw"
    assert invoke("evaluate", tmp_path / "q", log).exit_code == 0
    with pytest.raises(ConfigError, match="felrec-s has no recipe 'ordinary'"):
        invoke("train", log, "--out", tmp_path / "s", "--recipe", "ordinary")


def test_resuming_what_is_finished_changes_nothing(invoke, log: Path, run: Path) -> None:  # type: ignore[no-untyped-def]
    before = (run / "manifest.json").read_bytes()
    result = invoke("train", log, "--model", "felrec-q", "--out", run, "--resume")
    assert result.exit_code == 0
    assert "of 2" in result.stdout
    assert (run / "manifest.json").read_bytes() == before


def test_killed_and_resumed_equals_uninterrupted(felrec, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    log = write_log(tmp_path / "log.csv", 1_200)
    arguments = ["train", log, "--model", "felrec-q", "--epochs", 2, *TINY, "--set", "checkpoint_seconds=0.01"]
    assert felrec(*arguments, "--out", tmp_path / "whole").returncode == 0
    out = tmp_path / "killed"
    with subprocess.Popen(command(*arguments, "--out", out), env=ENVIRONMENT, stderr=subprocess.DEVNULL) as process:
        at = kill_within_an_epoch(process, out)
    assert at["step"] > 0
    assert not manifest_of(out)["finished"]
    done = felrec(*arguments, "--out", out, "--resume")
    assert done.returncode == 0, done.stderr
    whole, killed = manifest_of(tmp_path / "whole"), manifest_of(out)
    assert killed["best"]["sha256"] == whole["best"]["sha256"]
    assert killed["epochs"] == whole["epochs"]
    # The first line after resuming counts the steps before the kill: it is the epoch's true mean loss.
    assert f"loss {whole['epochs'][at['epoch']]['loss']:.3f}" in done.stderr.splitlines()[0]


def test_an_interrupt_writes_what_there_is(tmp_path: Path) -> None:
    log, out = write_log(tmp_path / "log.csv", 1_200), tmp_path / "run"
    arguments = ["train", log, "--model", "felrec-q", "--epochs", 500, *TINY, "--set", "checkpoint_seconds=1000"]
    with subprocess.Popen(
        command(*arguments, "--out", out),
        env=ENVIRONMENT,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # a test may run with it ignored
    ) as process:
        deadline = time.monotonic() + 60
        while not (out / "manifest.json").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        errors = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert "ending after this step and writing what there is" in errors
    assert "--resume" in errors.splitlines()[-1]
    resume = manifest_of(out)["resume"]
    assert resume["step"] > 0 or resume["epoch"] > 0


def kill_within_an_epoch(process: subprocess.Popen[bytes], out: Path) -> dict[str, Any]:
    """Kill -9 as soon as a checkpoint within an epoch exists; returns its entry in the manifest."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        if (out / "manifest.json").exists() and manifest_of(out).get("resume", {}).get("step", 0) >= 3:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            found: dict[str, Any] = manifest_of(out)["resume"]
            return found
        time.sleep(0.002)
    raise AssertionError("training ended before it could be killed")


def test_ctrl_c_prints_how_to_continue(tmp_path: Path) -> None:
    log = write_log(tmp_path / "log.csv", 4_000)
    out = tmp_path / "out with space"
    line = command("train", log, "--model", "felrec-q", "--out", out, *TINY, "--set", "checkpoint_seconds=0.01")
    with subprocess.Popen(line, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not list(out.glob("resume-*")):
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    last = errors.splitlines()[-1]
    assert last.startswith(f"interrupted; continue with felrec train {log} --model felrec-q --out '{out}'")
    assert last.endswith("--resume")
    assert "Traceback" not in errors


def test_resume_is_named_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["felrec", "train", "l.csv", "--resume", "--out", "o"])
    with pytest.raises(RuntimeError), options.resumable():
        raise KeyboardInterrupt
    assert capsys.readouterr().err.strip().endswith("felrec train l.csv --out o --resume")


def test_tensorboard_scalars(invoke, log: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    needs.package("tensorboard")
    arguments = ["--epochs", 1, *TINY, "--set", "tensorboard=true"]
    assert invoke("train", log, "--model", "felrec-q", "--out", tmp_path / "q", *arguments).exit_code == 0
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(tmp_path / "q" / "tensorboard"))
    events.Reload()
    record = manifest_of(tmp_path / "q")["epochs"][0]
    steps = events.Scalars("training/loss")
    assert [scalar.step for scalar in steps] == list(range(1, len(steps) + 1))
    assert len(steps) == 1_200 // 64 + 1
    assert events.Scalars("validation/rank")[0].value == pytest.approx(record["rank"], abs=1e-6)


def test_tensorboard_that_is_not_installed(  # type: ignore[no-untyped-def]
    invoke, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    monkeypatch.setitem(__import__("sys").modules, "torch.utils.tensorboard.writer", None)
    with pytest.raises(ConfigError, match=r"pip install .*'\.\[tensorboard\]'"):
        invoke("train", log, "--model", "felrec-q", "--out", tmp_path / "q", *TINY, "--set", "tensorboard=true")
    assert not (tmp_path / "q").exists()  # nothing was started


def test_the_next_command_is_ready_to_be_copied(tmp_path: Path, invoke: Callable[..., Result]) -> None:
    log, out = tmp_path / "my log.csv", tmp_path / "my run"
    lines = ["who,what,when", *(f"u{n % 9},shop:key:{n % 7},{n}" for n in range(100))]
    log.write_text("\n".join(lines))
    columns = ("--user-col", "who", "--item-col", "what", "--time-col", "when")
    said = invoke("train", log, "--model", "popularity", "--out", out, *columns).stdout
    command = shlex.split(said.splitlines()[-1].removeprefix("test it with: "))
    assert command[:2] == ["felrec", "evaluate"]
    assert "total" in invoke(*command[1:]).stdout
    assert "shop:key:3" in invoke("recommend", out, "--user", "u1").stdout  # ids are printed as they are
