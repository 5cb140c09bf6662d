"""`felrec tune`: the table and the command that trains the best."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result


def test_the_best_settings_are_a_command_that_runs(invoke: Callable[..., Result], log: Path, tmp_path: Path) -> None:
    arguments = ["tune", log, "--model", "decayed-popularity", "--out", tmp_path, "--try", "half_life=2..20000"]
    result = invoke(*arguments, "--trials", 6, "--by", "hr@10")
    assert result.exit_code == 0, result.output
    head, *rows, told, ready = result.stdout.splitlines()
    assert head.split() == ["trial", "settings", "mrr", "hr@10", "rank", "CPU"]
    assert len(rows) == 6
    hits = [float(row.split()[-4]) for row in rows]
    assert hits == sorted(hits, reverse=True)
    assert told.startswith(f"best of 6 on validation: hr@10 {hits[0]:.3f}, with the settings as they are ")
    words = shlex.split(ready.removeprefix("train the best with: felrec "))
    trained = invoke(*words)
    assert trained.exit_code == 0, trained.output
    assert f"hr@10 {hits[0]:.3f}" in trained.stdout
    assert invoke(*arguments, "--trials", 6, "--by", "hr@10").stdout == result.stdout  # read, not repeated


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--try", "half_life=5..50", "--set", "half_life=9"], "half_life is both set and tried"),
        (["--try", "halflife=5..50"], "has no setting 'halflife'"),
        (["--try", "half_life=5..50", "--scale", "hours=1"], "hours"),
        ([], "--try"),
    ],
)
def test_what_cannot_be_searched(felrec, log: Path, tmp_path: Path, options: list[str], message: str) -> None:  # type: ignore[no-untyped-def]
    done = felrec("tune", log, "--model", "decayed-popularity", "--out", tmp_path / "t", *options)
    assert done.returncode == 2
    assert message in done.stderr
    assert not (tmp_path / "t").exists()
