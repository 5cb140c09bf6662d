"""Older events merged into a store that has begun: as if all had come in time order."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from disks import killed_copy
from felrec.answers.types import BestItems
from felrec.data.events import Events
from felrec.data.log import InteractionLog
from felrec.errors import ConfigError, StoreBusy, StoreError
from felrec.service.engine.engine import Engine
from felrec.service.engine.limits import Limits
from felrec.service.engine.types import Attributes, IdempotencyKey
from felrec.service.maintenance.importing import Imported, import_log
from felrec.service.maintenance.journal import Journal
from felrec.service.maintenance.merging import comes_late, merge_log
from felrec.service.maintenance.replaying import fill_store
from felrec.service.maintenance.rewriting import name_of_old, new_store, to_rewrite
from stores import Given, contents_of, fitted, made_up, open_engine, post, state_of

OLDER, NEWER = made_up(700, start=1e9 - 10_000, seed=1), made_up(600, start=1e9, seed=2)


def log_of(events: list[Given]) -> InteractionLog:
    users, items, times = zip(*events, strict=True)
    return InteractionLog.from_frame(pl.DataFrame({"user": users, "item": items, "timestamp": times}))


def merge(path: Path, events: list[Given] | InteractionLog, name: str = "felrec-q") -> Imported:
    log = events if isinstance(events, InteractionLog) else log_of(events)
    with to_rewrite(path) as contents:
        journal, notes, done, _ = merge_log(contents, log, None)
        with new_store(path, name_of_old(path)) as new:
            fill_store(new, fitted(name), journal.blocks(Limits()), contents, notes)
    return done


def answers(engine: Engine) -> list[BestItems]:
    return [engine.recommend(f"user {n}", 12, exclude_seen=exclude) for n in range(20) for exclude in (True, False)]


@pytest.mark.parametrize("name", ["felrec-s", "felrec-q", "decayed-popularity", "repeat"])
def test_a_merged_store_is_one_that_got_all_events_in_time_order(name: str, tmp_path: Path) -> None:
    begun, straight = open_engine(tmp_path / "s", fitted(name)), open_engine(tmp_path / "t", fitted(name))
    post(begun, NEWER[300:])
    post(begun, NEWER[:300])  # late: when they came they counted as of then
    begun.close()
    assert merge(tmp_path / "s", OLDER, name) == Imported(events=700, before=0, late=700)
    import_log(straight, log_of([*OLDER, *NEWER]))
    merged = open_engine(tmp_path / "s", fitted(name))
    assert state_of(merged) == state_of(straight)
    assert answers(merged) == answers(straight)
    merged.close()
    straight.close()


def test_events_that_the_store_has_are_not_added_again(tmp_path: Path) -> None:
    engine = open_engine(tmp_path / "s")
    twice = [*NEWER[:5], *NEWER[:2]]
    import_log(engine, log_of(twice))
    engine.close()
    thrice = sorted([*OLDER[-5:], *NEWER[:5], *NEWER[:2], NEWER[0]], key=lambda event: event[-1])
    assert merge(tmp_path / "s", thrice) == Imported(events=6, before=7, late=5 + 1)
    assert len(contents_of(tmp_path / "s").events) == 13
    assert merge(tmp_path / "s", thrice).events == 0
    assert merge(tmp_path / "s", thrice[3:]).events == 0  # although that is another log


def test_an_event_with_another_weight_is_another_event() -> None:
    weights = [np.nan, 2.0, np.nan, 2.0, 1.0, 2.0]
    events = Events.of([0] * 6, [0] * 6, [5.0] * 6, weights)
    assert Journal(events, ["ada"], ["tea"]).had_before(2).tolist() == [True, True, False, False]


def test_an_erased_user_does_not_come_back_with_a_log_that_was_imported(tmp_path: Path) -> None:
    engine, log = open_engine(tmp_path / "s"), log_of(OLDER)
    import_log(engine, log)
    engine.erase_user("user 3").result()
    engine.close()
    merge(tmp_path / "s", log)
    assert "user 3" not in contents_of(tmp_path / "s").users
    assert "user 4" in contents_of(tmp_path / "s").users


def test_what_a_store_has_besides_events_is_kept(tmp_path: Path) -> None:
    engine, key = open_engine(tmp_path / "s"), IdempotencyKey("monday", b"body")
    receipt = post(engine, NEWER[:3], key)
    engine.put_item("item 1", Attributes(title="Tea", tags=("hot",))).result()
    import_log(engine, log_of(NEWER[3:9]))
    engine.close()
    merge(tmp_path / "s", OLDER)
    again = open_engine(tmp_path / "s")
    assert again.item("item 1").title == "Tea"
    assert post(again, NEWER[:3], key) == receipt
    assert import_log(again, log_of(NEWER[3:9])).events == 0
    assert import_log(again, log_of(OLDER)).events == 0
    assert again.health().events == 709
    again.close()


def test_the_old_store_is_kept_and_can_be_opened(tmp_path: Path) -> None:
    engine = open_engine(tmp_path / "s.sqlite")
    post(engine, NEWER)
    before = state_of(engine)
    engine.close()
    (tmp_path / "s.sqlite").chmod(0o640)
    merge(tmp_path / "s.sqlite", OLDER)
    (kept,) = tmp_path.glob("s.before-*.sqlite")
    old = open_engine(kept)
    assert state_of(old) == before
    old.close()
    assert (tmp_path / "s.sqlite").stat().st_mode & 0o777 == 0o640
    assert not list(tmp_path.glob(".s.sqlite.new*"))


def test_a_store_in_use_is_not_replaced(tmp_path: Path) -> None:
    engine = open_engine(tmp_path / "s")
    post(engine, NEWER)
    with pytest.raises(StoreBusy, match="in use"):
        merge(tmp_path / "s", OLDER)
    engine.close()
    with to_rewrite(tmp_path / "s"), pytest.raises(StoreBusy, match="in use"):
        open_engine(tmp_path / "s")
    (tmp_path / "link").symlink_to(tmp_path / "s")
    with pytest.raises(StoreError, match="is a link"):
        merge(tmp_path / "link", OLDER)


def test_what_a_killed_service_left_in_its_write_ahead_log_is_merged_too(tmp_path: Path) -> None:
    engine = open_engine(tmp_path / "s")
    post(engine, NEWER)
    path = killed_copy(tmp_path / "s", tmp_path / "killed")
    engine.close()
    merge(path, OLDER)
    assert len(contents_of(path).events) == 1_300


@pytest.mark.parametrize("last", ["fill_store", "verify", "link"])
def test_a_kill_changes_nothing_and_the_next_attempt_succeeds(last: str, tmp_path: Path) -> None:
    engine = open_engine(tmp_path / "s")
    post(engine, NEWER)
    engine.close()
    script = f"""
import os, sys
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
sys.path.insert(0, {str(Path(__file__).parent)!r})
import test_merging
from felrec.store.sqlite import SqliteStore
from felrec.service.engine.committer import Committer
def then_die(call):
    def calling(*given, **named):
        call(*given, **named)
        os._exit(9)
    return calling
Committer.finish, SqliteStore.verify, os.link = (
    then_die(call) if name == {last!r} else call
    for name, call in (("fill_store", Committer.finish), ("verify", SqliteStore.verify), ("link", os.link))
)
test_merging.merge(test_merging.Path({str(tmp_path / "s")!r}), test_merging.OLDER)
"""
    done = subprocess.run([sys.executable, "-c", script], env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 9
    assert len(contents_of(tmp_path / "s").events) == 600
    merge(tmp_path / "s", OLDER)
    assert len(contents_of(tmp_path / "s").events) == 1_300
    assert len(list(tmp_path.glob("s.before-*"))) == 1


def test_a_store_that_started_with_a_run_needs_its_log(tmp_path: Path) -> None:
    known = Events.of([0, 1], [0, 1], [5.0, 6.0])
    open_engine(tmp_path / "s", fitted(known=known)).close()
    with pytest.raises(ConfigError, match="training-log"):
        merge(tmp_path / "s", OLDER)


def test_only_older_events_need_a_merge(tmp_path: Path) -> None:
    engine = open_engine(tmp_path / "s")
    post(engine, NEWER[:300])
    engine.close()
    contents = contents_of(tmp_path / "s")
    assert comes_late(contents, log_of(OLDER))
    assert not comes_late(contents, log_of(NEWER[300:]))
