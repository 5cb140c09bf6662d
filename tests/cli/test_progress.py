"""Progress where there is no terminal, and work that is ended early."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import pytest
from typer.testing import Result

from felrec.cli.progress import EventProgress, TerminalReporter

Invoke = Callable[..., Result]


def test_a_line_after_10_seconds_and_then_every_30(capsys: pytest.CaptureFixture[str]) -> None:
    now = 1_000.0
    with EventProgress(counted="events", clock=lambda: now) as bar:
        now += 500  # before the task, so that it does not count
        task = bar.add_task("importing", total=10_000, loss="")
        for _ in range(100):
            now += 1
            bar.count(task, 100)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "importing: 1,000 of 10,000 events (10%), 100/s, about 2 min left",
        "importing: 4,000 of 10,000 events (40%), 100/s, about 60 s left",
        "importing: 7,000 of 10,000 events (70%), 100/s, about 30 s left",
        "importing: 10,000 of 10,000 events (100%), 100/s, about 0 s left",
    ]


def test_work_of_unknown_length_and_resumed_work(capsys: pytest.CaptureFixture[str]) -> None:
    now = 0.0
    with EventProgress(counted="users", clock=lambda: now) as bar:
        task = bar.add_task("observing", total=None, loss="")
        now += 20
        bar.count(task, 4_000)
        task = bar.add_task("training", total=10_000, completed=5_000, loss="")
        now += 50
        bar.count(task, 1_000)
    assert capsys.readouterr().err.splitlines() == [
        "observing: 4,000 users, 200/s",
        "training: 6,000 of 10,000 users (60%), 20/s, about 3 min left",
    ]


@pytest.fixture
def interrupted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C as soon as the first events are counted."""

    @contextmanager
    def evaluating(reporter: TerminalReporter, model: str, events: int) -> Iterator[Callable[[int], None]]:
        yield lambda done: signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(TerminalReporter, "evaluating", evaluating)


def test_an_interrupted_evaluation_reports_what_it_has(
    interrupted_once: None, invoke: Invoke, run: Path, log: Path, tmp_path: Path
) -> None:
    file, events, before = tmp_path / "r.json", tmp_path / "e.parquet", signal.getsignal(signal.SIGINT)
    ended = invoke("evaluate", run, log, "--block", 40, "--json", file, "--events", events)
    assert ended.exit_code == 130
    assert "interrupted: these are the first 40 of 150 test events" in ended.stderr
    told = json.loads(file.read_text())
    assert told["unfinished"] == 110
    assert told["partitions"]["total"]["events"] == pl.read_parquet(events).height == 40
    assert signal.getsignal(signal.SIGINT) is before


def test_nothing_is_written_before_the_first_test_event(
    interrupted_once: None, invoke: Invoke, run: Path, log: Path, tmp_path: Path
) -> None:
    ended = invoke("evaluate", run, log, "--cache", "reset", "--json", tmp_path / "r.json")
    assert (ended.exit_code, (tmp_path / "r.json").exists()) == (130, False)
    assert "interrupted before the first test event" in ended.stderr


def test_only_the_newest_events_are_used(invoke: Invoke, log: Path, tmp_path: Path) -> None:
    assert invoke("inspect", log, "--newest", 400).stdout.startswith("rows             400\n")
    assert invoke("inspect", log, "--newest", 9_999).stdout.startswith("rows             1,500\n")
    store = tmp_path / "store.sqlite"
    assert "200 events ingested" in invoke("import", log, "--newest", 200, "--store", store).stdout
