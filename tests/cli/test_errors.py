"""User errors: one line on stderr that says what to do, exit code 2, no traceback."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from felrec.cli import main


def fails(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    assert end.value.code == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("felrec: ")
    return lines[0]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nonsense"], "nonsense"),
        (["train", "LOG"], "--out"),
        (["train", "LOG", "--modle", "felrec-q"], "--model"),
        (["train", "LOG", "--model", "nothing", "--out", "NEW"], "choose one of felrec-s, felrec-q"),
        (["train", "missing.csv", "--model", "popularity", "--out", "NEW"], "missing.csv"),
        (["train", "LOG", "--model", "felrec-q", "--out", "NEW", "--set", "widht=8"], "'widht'"),
        (["train", "LOG", "--model", "felrec-q", "--out", "NEW", "--set", "width"], "key=value"),
        (["train", "LOG", "--model", "felrec-q", "--out", "NEW", "--set", "width=wide"], "width="),
        (["train", "LOG", "--model", "felrec-q", "--out", "NEW", "--epochs", "0"], "epochs"),
        (["train", "LOG", "--model", "felrec-q", "--out", "NEW", "--epochs", "many"], "--epochs"),
        (["train", "LOG", "--model", "felrec-q", "--out", "NEW", "--config", "none.toml"], "none.toml"),
        (["train", "LOG", "--model", "felrec-q", "--out", "NEW", "--device", "gpu"], "--device gpu"),
        (["train", "LOG", "--model", "felrec-q", "--out", "RUN"], "--resume"),
        (["train", "LOG", "--model", "popularity", "--out", "RUN", "--resume"], "is a run of felrec-q"),
        (["train", "LOG", "--model", "felrec-q", "--out", "RUN", "--resume", "--set", "width=16"], "width=8"),
        (["inspect", "missing.csv"], "missing.csv"),
        (["inspect", "1.csv", "2.csv"], "quote their pattern, as in 'log/*.csv'"),
        (["inspect", "LOG", "--user-col", "who"], "who"),
        (["inspect", "LOG", "--time-unit", "years"], "years"),
        (["evaluate", "NEW", "LOG"], "felrec train"),
        (["evaluate", "RUN", "LOG", "--cache", "full"], "'kept', 'reset', 'empty'"),
        (["evaluate", "RUN", "LOG", "--protocol", "offline"], "'online', 'paper'"),
        (["evaluate", "RUN", "LOG", "--json", "no/where.json"], "no directory no"),
        (["evaluate", "RUN", "LOG", "--set", "lr=1"], "'lr'"),
        (["evaluate", "RUN", "LOG", "--set", "width=16"], "cannot be changed after training"),
        (["compare", "LOG", "--models", "popularity,popularity", "--out", "NEW"], "once"),
        (["compare", "LOG", "--models", "popularity,felrec-z", "--out", "NEW"], "felrec-z"),
        (["compare", "LOG", "--models", "popularity", "--out", "NEW", "--set", "width=8"], "'width'"),
        (["recommend", "NEW", "--user", "1"], "is not a run directory"),
        (["recommend", "RUN"], "one of --user U, --item I, --all or --users F"),
        (["recommend", "RUN", "--user", "1", "--item", "1"], "one of --user U, --item I, --all or --users F"),
        (["recommend", "RUN", "--all"], "give its name with --out"),
        (["recommend", "RUN", "--all", "--out", "recs.xls"], "end the name in .parquet or .csv"),
        (["recommend", "RUN", "--all", "--out", "recs.csv", "--json"], "--json is for one user"),
        (["recommend", "RUN", "--all", "--out", "recs.csv", "--shard", "5/4"], "--shard 5/4: write it as 3/16"),
        (["recommend", "RUN", "--user", "1", "--shard", "1/4"], "--shard is for --all and --users"),
        (["merge-recs", "LOG", "--out", "recs.csv"], "not a shard that felrec recommend --shard wrote"),
        (["recommend", "RUN", "--user", "1", "--out", "recs.csv"], "--out is for --all and --users"),
        (["recommend", "RUN", "--item", "1", "--exclude-seen", "yes"], "omit them with --item"),
        (["recommend", "RUN", "--user", "1", "-k", "0"], "greater than or equal to 1"),
        (["recommend", "RUN", "--item", "never seen"], "no events yet"),
        (
            ["recommend", "pretrained", "--user", "1"],
            "has no items; to recommend from the events of a store, start felrec serve",
        ),
        (["evaluate", "pretrained", "LOG", "--set", "own_items=0"], "cannot be changed after training"),
        (["evaluate", "pretrained", "LOG", "--set", "ownitems=0"], "felrec-s has no setting 'ownitems'"),
        (["evaluate", "LOG", "RUN"], "is a file; give the run directory first, then the log"),
        (["evaluate", "RUN", "LOG", "--events", "events.csv"], "end the name in .parquet"),
        (["pretrain", "--out", "NEW"], "--synthetic 8"),
        (["reproduce", "ablation", "--data", "LOG", "--out", "NEW", "--scale", "evens=1"], "unknown key or no value"),
        (["datasets", "fetch", "ml-3", "--to", "NEW"], "ml-100k"),
        (["demo", "--out", "RUN"], "not an earlier demo"),
        (["replay", "store.sqlite", "--out", "NEW", "--weights", "3=5"], "--weights need the run"),
        (["replay", "store.sqlite", "RUN", "--out", "NEW", "--weights", "3=5", "--follow"], "cannot change events"),
    ],
)
def test_one_line_that_says_what_to_do(
    arguments: list[str], says: str, log: Path, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = {"LOG": log, "RUN": run, "NEW": tmp_path / "new"}
    assert says in fails(capsys, *(places.get(argument, argument) for argument in arguments))
    assert (run / "manifest.json").exists()
    assert not (tmp_path / "new" / "manifest.json").exists()


def test_the_cache_of_another_log_is_refused(
    run: Path, log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.csv"
    lines = log.read_text().splitlines(keepends=True)
    other.write_text("".join(lines[:-100]))
    assert "--cache reset" in fails(capsys, "evaluate", run, other, "--cache", "kept")


def test_damaged_runs_are_named(run: Path, log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(run, copy)
    weights = next(copy.glob("best*/weights.safetensors"))
    weights.write_bytes(weights.read_bytes()[:-1] + b"!")
    assert "checksum" in fails(capsys, "evaluate", copy, log)
    weights.unlink()
    assert "weights.safetensors is missing" in fails(capsys, "recommend", copy, "--user", "1")
    (copy / "manifest.json").write_text("{")
    assert "manifest.json" in fails(capsys, "recommend", copy, "--user", "1")


def test_a_config_file_that_is_no_toml(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "c.toml"
    config.write_text("width = = 8")
    told = fails(capsys, "train", log, "--model", "felrec-q", "--out", tmp_path / "o", "--config", config)
    assert "not a TOML file" in told


def test_a_run_of_a_newer_felrec(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = json.loads((run / "manifest.json").read_text())
    (tmp_path / "manifest.json").write_text(json.dumps(manifest | {"format": 99}))
    assert "upgrade felrec" in fails(capsys, "recommend", tmp_path, "--user", "1")


def test_an_output_that_cannot_be_made(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("in the way")
    assert "--out" in fails(capsys, "train", log, "--model", "popularity", "--out", tmp_path / "file" / "run")
