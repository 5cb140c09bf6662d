"""Evaluation from the command line: the table, the JSON contract, the events."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from typer.testing import Result

from felrec.cli.tables import ties_note
from felrec.evaluation.report import PAPER_LABEL

from .conftest import write_log

METRICS = {"rank", "hr@10_sampled", "hr@10", "ndcg@10", "mrr"}


def test_json_contract(invoke: Callable[..., Result], run: Path, log: Path, tmp_path: Path) -> None:
    file, events_file = tmp_path / "r.json", tmp_path / "e.parquet"
    result = invoke("evaluate", run, log, "--json", file, "--events", events_file, "--seed", 3)
    assert result.exit_code == 0
    told = json.loads(file.read_text())
    assert list(told) == [
        *("model", "protocol", "cache", "exclude_seen", "block", "seed"),
        *("first_events", "parameters", "seconds", "partitions"),
    ]
    assert (told["model"], told["protocol"], told["cache"], told["seed"]) == ("felrec-q", "online", "kept", 3)
    assert list(told["partitions"]) == ["observed", "new_users", "new_items", "total", "total_representable"]
    for values in told["partitions"].values():
        assert set(values) == {"events", "share", *METRICS}
    events = pl.read_parquet(events_file)
    assert events.height == told["partitions"]["total"]["events"] == 150
    assert events["hr@10"].mean() == pytest.approx(told["partitions"]["total"]["hr@10"])
    assert events["first"].mean() == pytest.approx(told["first_events"])


def test_table_shows_what_the_json_says(invoke: Callable[..., Result], run: Path, log: Path, tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    result = invoke("evaluate", run, log, "--json", file)
    total = json.loads(file.read_text())["partitions"]["total"]
    header, names, *rows = result.stdout.splitlines()
    assert header.startswith("felrec-q: protocol online, cache kept, seen items ranked too, first events ")
    assert names.split() == ["partition", "events", "share", "rank", "hr@10_sampled", "hr@10", "ndcg@10", "mrr"]
    assert [row.split()[0] for row in rows] == ["observed", "new_users", "new_items", "total"]
    shown = rows[-1].split()
    assert shown[1:4] == ["150", "100.0", "%"]
    assert shown[4] == f"{total['rank']:.3f}"
    assert shown[-1] == f"{total['mrr']:.3f}"


def test_other_blocks_are_said(invoke: Callable[..., Result], run: Path, log: Path) -> None:
    header = invoke("evaluate", run, log, "--block", 1).stdout.splitlines()[0]
    assert header.startswith("felrec-q: protocol online in blocks of 1, cache kept")


def test_piped_output_has_no_boxes_and_no_wraps(felrec, run: Path, log: Path) -> None:  # type: ignore[no-untyped-def]
    done = felrec("evaluate", run, log, "--protocol", "paper")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 6
    assert PAPER_LABEL in done.stdout.splitlines()[0]
    assert not set("│─┃━\x1b") & set(done.stdout)


@pytest.mark.parametrize("cache", ["kept", "reset", "empty"])
def test_cache(invoke: Callable[..., Result], run: Path, log: Path, cache: str) -> None:
    assert f"cache {cache}, " in invoke("evaluate", run, log, "--cache", cache).stdout


def test_another_log_is_replayed(invoke: Callable[..., Result], run: Path, tmp_path: Path) -> None:
    other = write_log(tmp_path / "other.csv", 400, seed=9)
    assert "cache reset, " in invoke("evaluate", run, other).stdout


def test_exclude_seen(invoke: Callable[..., Result], run: Path, log: Path) -> None:
    ranked, left_out = (invoke("evaluate", run, log, "--exclude-seen", seen).stdout for seen in ("no", "yes"))
    assert "seen items ranked too" in ranked
    assert "seen items left out" in left_out
    assert ranked.splitlines()[-1] != left_out.splitlines()[-1]


def test_a_setting_of_scoring_can_be_changed(invoke: Callable[..., Result], run: Path, log: Path) -> None:
    plain, neighbours = invoke("evaluate", run, log), invoke("evaluate", run, log, "--set", "neighbours=10")
    assert neighbours.exit_code == 0
    assert plain.stdout.splitlines()[2:] != neighbours.stdout.splitlines()[2:]


def test_ties_are_noted() -> None:
    times = pl.Series([1.0, 1.0, 1.0, 2.0, 3.0]).to_numpy()
    assert "50.0 %" in (ties_note(times) or "")
    assert ties_note(times[2:]) is None


def test_lists_of_several_lengths(invoke: Callable[..., Result], run: Path, log: Path, tmp_path: Path) -> None:
    tags, file = tmp_path / "tags.csv", tmp_path / "r.json"
    tags.write_text("movieId,genres\n" + "".join(f"{n},{'a|b' if n % 3 else 'c'}\n" for n in range(80)))
    result = invoke("evaluate", run, log, "--k", "10,5", "--tags", tags, "--json", file)
    assert result.exit_code == 0, result.output
    rows = [line.split() for line in result.stdout.split("\n\n")[1].splitlines()]
    assert rows[0] == ["metric", "@5", "@10"]
    assert [row[0] for row in rows[1:5]] == ["recall", "precision", "map", "ndcg"]
    told = json.loads(file.read_text())
    assert told["k"] == [5, 10]
    shown = {f"{row[0]}@{k}": value for row in rows[1:] for k, value in zip((5, 10), row[1:], strict=True)}
    assert shown == {name: f"{value:.3f}" for name, value in told["at_k"].items()}
    assert told["at_k"]["recall@10"] == told["partitions"]["total"]["hr@10"]
    assert 0 < told["at_k"]["diversity@10"] < 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--k", "ten"], "--k ten: give numbers"),
        (["--tags", "t.csv"], "--k 10"),
        (["--k", "5", "--tags", "no.csv"], "no.csv: no such file"),
    ],
)
def test_bad_options_of_lists(felrec, run: Path, log: Path, options: list[str], message: str) -> None:  # type: ignore[no-untyped-def]
    done = felrec("evaluate", run, log, *options)
    assert done.returncode == 2
    assert message in done.stderr
