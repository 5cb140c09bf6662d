"""Store maintenance: import, replay, export, backup, verify."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import Result

from disks import flip, killed_copy
from felrec import runs
from felrec.data.events import EventColumns
from felrec.data.reading.sources import read_log
from felrec.service.engine.cluster.member import Member
from felrec.service.engine.engine import Engine
from felrec.service.maintenance.keeping_up import KeepingUp, begin_to_follow
from felrec.service.maintenance.replaying import replay_store
from felrec.service.maintenance.rewriting import new_store
from felrec.store.sqlite import SqliteStore

from .conftest import ENVIRONMENT, TINY, Felrec, command

Invoke = Callable[..., Result]


@pytest.fixture
def store(tmp_path: Path, run: Path, log: Path, invoke: Invoke) -> Path:
    """A store that started from a run and has imported the rest of its log."""
    path = tmp_path / "store.sqlite"
    done = invoke("import", log, run, "--store", path)
    assert "150 events ingested, 1,350 already there, 0 late; 1,500 in total" in done.stdout
    return path


def states(store: Path, run: Path) -> dict[str, bytes]:
    engine = Engine.open(SqliteStore(store), runs.load(run))
    state = engine._state.recommender.state()
    engine.close()
    return {name: tensor.numpy().tobytes() for name, tensor in state.items()}


def test_of_the_log_of_the_run_only_the_rest_is_imported_and_only_once(
    store: Path, run: Path, log: Path, invoke: Invoke
) -> None:
    again = invoke("import", log, run, "--store", store).stdout
    assert "0 events ingested, 1,500 already there" in again
    assert "1,500 in total" in again


def test_an_imported_log_is_an_observed_log(store: Path, run: Path, log: Path) -> None:
    """Both use blocks of 256 events."""
    model, events = runs.load(run), read_log(log)
    for block in events.events[1_350:].blocks(256):
        model.recommender.observe(block)
    offline = {name: tensor.numpy().tobytes() for name, tensor in model.recommender.state().items()}
    assert states(store, run) == offline


def test_another_log_is_imported_whole_into_the_store_of_the_run(
    tmp_path: Path, run: Path, log: Path, invoke: Invoke
) -> None:
    other = tmp_path / "other.csv"
    pl.DataFrame({"user": ["x", "y"], "item": [1, 2], "timestamp": [1_700_000_000, 1_700_000_001]}).write_csv(other)
    path = tmp_path / "s.sqlite"
    assert "2 events ingested" in invoke("import", other, run, "--store", path, "--empty").stdout
    assert "2 in total" in invoke("import", other, run, "--store", path).stdout
    late = ("import", log, run, "--store", path, "--late", "take")
    assert "1,500 events ingested, 0 already there, 1,500 late" in invoke(*late).stdout


@pytest.mark.parametrize("imported", [True, False], ids=["after an import", "after training alone"])
def test_of_a_log_that_has_grown_only_the_new_rows_are_imported(
    imported: bool, tmp_path: Path, run: Path, log: Path, invoke: Invoke
) -> None:
    path, grown = tmp_path / "s.sqlite", tmp_path / "grown.csv"
    if imported:
        invoke("import", log, run, "--store", path)
    rows = pl.read_csv(log)
    newest = rows["timestamp"].max()
    pl.concat([rows, rows.tail(3).with_columns(timestamp=pl.lit(newest) + 1)]).write_csv(grown)
    said = "3 events ingested, 1,500" if imported else "153 events ingested, 1,350"
    assert f"{said} already there, 0 late; 1,503 in total" in invoke("import", grown, run, "--store", path).stdout
    assert "0 events ingested, 1,503 already there" in invoke("import", grown, run, "--store", path).stdout


def test_an_overlapping_log_is_refused_without_late(
    store: Path, run: Path, log: Path, tmp_path: Path, felrec: Felrec, invoke: Invoke
) -> None:
    overlapping, rows = tmp_path / "overlapping.csv", pl.read_csv(log)
    newer = rows.tail(2).with_columns(timestamp=pl.lit(rows["timestamp"].max()) + 5)
    pl.concat([rows.tail(100), newer]).write_csv(overlapping)
    asked = ("import", overlapping, run, "--store", store)
    refused = felrec(*asked)
    assert refused.returncode == 2
    assert "of the 102 events to import are older than the newest event of the store" in refused.stderr
    assert "add --late skip" in refused.stderr
    assert "150 events in 1 blocks" in invoke("verify", store, run).stdout
    done = invoke(*asked, "--late", "skip").stdout
    assert "2 events ingested, 0 already there, 0 late, 100 skipped; 1,502 in total" in done


def test_older_events_are_merged_in_time_order(
    store: Path, run: Path, log: Path, tmp_path: Path, felrec: Felrec, invoke: Invoke
) -> None:
    """The store started with the state of a run, so the log of that run is needed to begin before it."""
    rows, older, whole = pl.read_csv(log), tmp_path / "older.csv", tmp_path / "whole.csv"
    early = rows.head(40).with_columns(timestamp=pl.col("timestamp") - 1_000_000)
    pl.concat([early, rows.tail(20)]).write_csv(older)  # the store has the last 20
    pl.concat([early, rows]).write_csv(whole)
    asked = ("import", older, run, "--store", store, "--late", "merge")
    refused = felrec(*asked)
    assert refused.returncode == 2
    assert "--training-log" in refused.stderr
    done = invoke(*asked, "--training-log", log).stdout
    assert "40 events merged, 20 already there; 1,540 in total; the store as it was: " in done
    assert Path(done.split("as it was: ")[1].strip()).is_file()
    straight = tmp_path / "straight.sqlite"
    invoke("import", whole, run, "--store", straight, "--empty")
    assert states(store, run) == states(straight, run)
    again = invoke(*asked).stdout
    assert "0 events ingested, 60 already there, 0 late; 1,540 in total" in again


def test_newer_events_are_imported_without_building_the_store_again(
    store: Path, run: Path, log: Path, tmp_path: Path, invoke: Invoke
) -> None:
    newer = tmp_path / "newer.csv"
    rows = pl.read_csv(log)
    rows.tail(5).with_columns(timestamp=pl.lit(rows["timestamp"].max()) + 1).write_csv(newer)
    done = invoke("import", newer, run, "--store", store, "--late", "merge").stdout
    assert "5 events ingested, 0 already there, 0 late; 1,505 in total" in done
    assert not list(tmp_path.glob("*before*"))


def test_users_and_items_without_recent_events_are_let_go(
    tmp_path: Path, run: Path, felrec: Felrec, invoke: Invoke
) -> None:
    events, path = tmp_path / "events.csv", tmp_path / "s.sqlite"
    times = [datetime(year, 3, 1, tzinfo=UTC).timestamp() for year in (2020, 2023, 2024)]
    pl.DataFrame({"user": ["a", "b", "b"], "item": ["x", "x", "y"], "timestamp": times}).write_csv(events)
    invoke("import", events, run, "--store", path, "--empty")
    asked = ("forget", path, run, "--after", "400d")
    told = "go of 1 users and 0 items without an event for 400d, with 1 events; 2 events are left"
    assert f"would let {told}" in invoke(*asked, "--dry-run").stdout
    assert "3 events in" in invoke("verify", path).stdout
    done = invoke(*asked, "--keep").stdout
    assert f": let {told}" in done
    assert "3 events in" in invoke("verify", done.split("as it was: ")[1].strip()).stdout
    assert "2 events in 1 blocks after an initial state of 0 events, 1 users, 2 items" in invoke("verify", path).stdout
    assert "0 events ingested, 3 already there" in invoke("import", events, run, "--store", path).stdout
    wrong = felrec("forget", path, run, "--after", "soon")
    assert wrong.returncode == 2
    assert "give hours, days or weeks" in wrong.stderr


def test_an_interrupted_import_continues(tmp_path: Path, run: Path, felrec: Felrec) -> None:
    rows = pl.DataFrame({"user": range(40_000), "item": range(40_000), "timestamp": range(40_000)})
    rows = rows.with_columns(user=pl.col("user") % 500, item=pl.col("item") * 7 % 300)
    rows.write_parquet(tmp_path / "long.parquet")
    path = tmp_path / "s.sqlite"
    asked = ("import", tmp_path / "long.parquet", run, "--store", path, "--empty")
    with subprocess.Popen(command(*asked), env=ENVIRONMENT) as process:
        while not (path.exists() and path.stat().st_size + wal(path) > 400_000):
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
    done = felrec(*asked)
    assert done.returncode == 0, done.stderr
    assert "40,000 in total" in done.stdout
    assert " 0 already there" not in done.stdout


def wal_of(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


def wal(path: Path) -> int:
    return wal_of(path).stat().st_size if wal_of(path).exists() else 0


def test_replay_with_other_weights(store: Path, run: Path, log: Path, tmp_path: Path, invoke: Invoke) -> None:
    """The state equals that of an offline model with the new weights that observed every event."""
    better = tmp_path / "better"
    invoke("train", log, "--model", "felrec-q", "--out", better, "--epochs", 1, "--seed", 7, *TINY)
    new = tmp_path / "new.sqlite"
    done = invoke("replay", store, better, "--out", new, "--log", log)
    assert "1,500 events replayed with felrec-q" in done.stdout
    assert sorted(file.name for file in tmp_path.glob("*new*")) == ["new.sqlite"]
    model, events = runs.load(better), read_log(log)
    model.recommender.reset()
    for part in (events.events[:1_350], events.events[1_350:]):
        for block in part.blocks(256):
            model.recommender.observe(block)
    offline = {name: tensor.numpy().tobytes() for name, tensor in model.recommender.state().items()}
    assert states(new, better) == offline
    assert "0 events ingested, 1,500 already there" in invoke("import", log, better, "--store", new).stdout


def test_a_store_that_started_from_a_run_is_followed(store: Path, run: Path, log: Path, tmp_path: Path) -> None:
    with SqliteStore(store, "read") as seen:
        contents = seen.load()
    with new_store(tmp_path / "new.sqlite") as new:
        replay_store(contents, runs.load("pretrained"), new, read_log(log))
        begin_to_follow(new, contents, str(store))
    member = Member.open(SqliteStore(store, shared=True), runs.load(run))
    try:
        member.submit(EventColumns.of(["missed"], ["tea"], [2e9])).result(30)
        with SqliteStore(store, "write", shared=True) as old, SqliteStore(tmp_path / "new.sqlite", "write") as new:
            keeping = KeepingUp(old, new, runs.load("pretrained"))
            member.submit(EventColumns.of(["seen"], ["tea"], [2e9])).result(30)
            assert keeping.behind == 1
            assert keeping.step(1.0)
            assert keeping.behind == 0
            followed = new.load()
    finally:
        member.close()
    rows = zip(followed.events.users.tolist()[1_500:], followed.events.items.tolist()[1_500:], strict=True)
    named = [(followed.users[user], followed.items[item]) for user, item in rows]
    assert named == [("missed", "tea"), ("seen", "tea")]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("s.sqlite", "--out", "new.sqlite"), "--follow needs the run"),
        (("s.sqlite", "pretrained", "--out", "n.sqlite", "--latest", "2026-11-17T12:00:00"), "cannot change events"),
        (("s.sqlite", "pretrained", "--out", "n.sqlite", "--out-namespace", "shop"), "a file has no namespaces"),
    ],
)
def test_what_cannot_be_followed_is_refused(arguments: tuple[str, ...], why: str, felrec: Felrec) -> None:
    done = felrec("replay", *arguments, "--follow")
    assert (done.returncode, why in done.stderr) == (2, True), done.stderr


@pytest.mark.parametrize("how", [(), ("--shared",)])
def test_a_service_needs_the_log_of_a_run_to_let_go_of_its_users(
    how: tuple[str, ...], store: Path, run: Path, log: Path, tmp_path: Path, felrec: Felrec
) -> None:
    asked = ("serve", run, "--store", store, "--port", "0", "--forget-after", "400d", *how)
    other = tmp_path / "other.csv"
    other.write_text("user,item,timestamp\nada,tea,1\nbob,jam,2\n")
    for more, why in (((), "give the training log of that run with --log"), (("--log", other), "is not the log that")):
        refused = felrec(*asked, *more)
        assert (refused.returncode, why in refused.stderr) == (2, True), refused.stderr
    with subprocess.Popen(
        command(*asked, "--log", log), env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as served:
        try:
            assert served.stdout is not None
            assert "serving at" in served.stdout.readline()
            served.send_signal(signal.SIGTERM)
            assert served.wait(60) == 0
        finally:
            served.kill()


def test_replay_corrects_times_of_a_clock_that_was_ahead(
    store: Path, run: Path, log: Path, tmp_path: Path, invoke: Invoke
) -> None:
    events, new = read_log(log), tmp_path / "new.sqlite"
    latest = datetime.fromtimestamp(events.times[-40], UTC).strftime("%Y-%m-%dT%H:%M:%S")
    done = invoke("replay", store, run, "--out", new, "--log", log, "--latest", latest)
    assert "1,500 events replayed" in done.stdout
    with SqliteStore(new, "read") as corrected:
        times = corrected.load().events.times
    right = events.times <= datetime.fromisoformat(latest).replace(tzinfo=UTC).timestamp()
    assert 0 < (~right).sum() <= 40
    assert times[right].tolist() == events.times[right].tolist()
    assert set(times[~right].tolist()) == {times[right][-1]}


def test_a_changed_table_of_kinds_is_applied_to_a_store(tmp_path: Path, invoke: Invoke) -> None:
    log, store, new = tmp_path / "shop.csv", tmp_path / "store.sqlite", tmp_path / "new.sqlite"
    rows = [f"{n % 7},{n % 5},{n},{'view' if n % 3 else 'buy'}" for n in range(60)]
    log.write_text("\n".join(["user,item,timestamp,kind", *rows]))
    invoke("import", log, "--kinds", "view=context,buy=3", "--store", store)
    done = invoke("replay", store, "pretrained", "--out", new, "--weights", "3=5")
    assert "60 events replayed" in done.stdout
    again = invoke("import", log, "--kinds", "view=context,buy=5", "--store", new, "--late", "merge")
    assert "0 events merged, 60 already there; 60 in total" in again.stdout
    assert "another weight" not in again.stderr
    twice = invoke("import", log, "--kinds", "view=context,buy=5", "--store", store, "--late", "merge")
    assert "20 events merged, 40 already there" in twice.stdout
    assert "20 of the merged events were there with another weight" in twice.stderr
    assert "felrec replay --weights" in twice.stderr


def test_backup_and_verify(store: Path, run: Path, tmp_path: Path, invoke: Invoke) -> None:
    assert "verified" in invoke("backup", store, tmp_path / "copy.sqlite").stdout
    said = invoke("verify", tmp_path / "copy.sqlite", run).stdout
    assert "150 events in 1 blocks after an initial state of 1,350 events" in said
    assert "no problems found" in said
    assert states(tmp_path / "copy.sqlite", run) == states(store, run)


@pytest.mark.parametrize("name", ["all.parquet", "all.csv"])
def test_the_events_of_a_store_can_be_exported(
    name: str, store: Path, log: Path, tmp_path: Path, invoke: Invoke
) -> None:
    out = tmp_path / name
    assert "1,500 events of" in invoke("export", store, out, "--log", log).stdout
    said, given = (invoke("inspect", file, "--json").stdout for file in (out, log))
    assert {**json.loads(said), "source": ""} == {**json.loads(given), "source": ""}
    assert "150 events of" in invoke("export", store, tmp_path / f"journal-{name}", "--journal").stdout


def test_erased_users_are_not_exported(store: Path, run: Path, log: Path, tmp_path: Path, invoke: Invoke) -> None:
    user = str(pl.read_csv(log)["user"][-1])
    engine = Engine.open(SqliteStore(store), runs.load(run))
    engine.erase_user(user).result()
    engine.close()
    invoke("export", store, tmp_path / "left.csv", "--log", log)
    left = pl.read_csv(tmp_path / "left.csv")
    assert 0 < left.height < 1_500
    assert user not in left["user"].cast(pl.String).to_list()


def test_without_a_run_a_log_is_imported_with_the_bundled_weights(log: Path, tmp_path: Path, invoke: Invoke) -> None:
    path = tmp_path / "elsewhere.sqlite"
    assert "1,500 events ingested" in invoke("import", log, "--store", path).stdout
    assert "1,500 events in 6 blocks" in invoke("verify", path, "pretrained").stdout
    assert "0 events ingested, 1,500 already there" in invoke("import", log, "--store", path).stdout
    new = tmp_path / "replayed.sqlite"  # the store started empty, so no log is needed
    assert "1,500 events replayed" in invoke("replay", path, "pretrained", "--out", new).stdout
    assert states(new, Path("pretrained")) == states(path, Path("pretrained"))


def test_missing_events_are_reported_until_the_loss_is_accepted(
    store: Path, run: Path, log: Path, tmp_path: Path, felrec: Felrec
) -> None:
    engine = Engine.open(SqliteStore(store), runs.load(run))
    for n in range(5):
        engine.submit(EventColumns(["ada"], [str(n)], np.array([2e9 + n]))).result()
    killed = killed_copy(store, tmp_path / "killed")
    engine.close()
    flip(wal_of(killed), wal(killed) - 100)
    for refused in (("verify", killed), ("import", log, run, "--store", killed), ("backup", killed, tmp_path / "copy")):
        done = felrec(*refused)
        assert done.returncode == 2
        assert "1 acknowledged change(s) with 1 event(s) are missing" in done.stdout + done.stderr, refused
    accepted = felrec("verify", killed, "--accept-loss")
    assert (accepted.returncode, "1 event(s) are missing; accepted" in accepted.stdout) == (0, True), accepted
    assert "154 events in" in felrec("verify", killed, run).stdout
    assert felrec("backup", killed, tmp_path / "copy").returncode == 0
    assert "no acknowledged event is missing" in felrec("verify", killed, "--accept-loss").stdout


def test_errors_are_one_line(store: Path, run: Path, log: Path, tmp_path: Path, felrec: Felrec) -> None:
    (tmp_path / "text").write_text("no store")
    damaged = tmp_path / "damaged.sqlite"
    content = bytearray(store.read_bytes())
    content[-5_000:] = bytes(5_000)
    damaged.write_bytes(content)
    engine = Engine.open(SqliteStore(store), runs.load(run))
    cases = [
        (("import", log, run, "--store", store), "in use by another engine; stop it first"),
        (("verify", tmp_path / "text"), "not a felrec store"),
        (("verify", tmp_path / "nothing"), "no such store; check the path"),
        (("verify", damaged), "; restore a backup"),
        (("backup", damaged, tmp_path / "copy"), "damaged"),
        (("backup", store, store), "exists; give the backup another name"),
        (("backup", store, tmp_path / "no" / "copy"), "there is no directory"),
        (
            ("serve", tmp_path / "no run", "--store", tmp_path / "made for nothing", "--port", "0"),
            "is not a run directory",
        ),
        (("replay", store, run, "--out", tmp_path / "new"), "give the log of that run with --log"),
        (("replay", store, run, "--out", store), "exists; give the new store another name"),
        (("export", store, tmp_path / "out.csv"), "give the log of that run with --log"),
        (("export", store, tmp_path / "out.xml", "--journal"), "unknown extension; choose one of .parquet, .csv"),
        (("export", store, damaged, "--journal"), "exists; give the log another name"),
        (("export", store, tmp_path / "no" / "out.csv", "--journal"), "there is no directory"),
    ]
    for arguments, words in cases:
        done = felrec(*arguments)
        assert (done.returncode, words in done.stderr) == (2, True), (arguments, done.stderr)
        assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "made for nothing").exists()
    engine.close()
