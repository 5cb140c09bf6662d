"""The state is saved from time to time: whatever is on disk is the state after one block of the journal."""

from __future__ import annotations

import math
import time
from pathlib import Path

import pytest

from disks import killed_copy
from felrec.data.events import Events
from felrec.model.kernels.native.library import state_kernels
from felrec.service.engine import changed_rows, committer, state_saver
from felrec.service.engine.engine import Engine
from felrec.service.engine.limits import Limits
from felrec.service.engine.serving_state import ServingState
from felrec.store import row_blobs, state_writing
from felrec.store.sqlite import SqliteStore
from stores import (
    BASE,
    NOTHING,
    contents_of,
    digest,
    fitted,
    made_up,
    open_engine,
    post,
    replayed_offline,
    save,
    state_of,
)

NEVER = Limits(rebuild_after=math.inf, save_seconds=math.inf, save_work=math.inf)


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_blobs, "_PAGE_BYTES", 4_000)
    monkeypatch.setattr(state_writing, "_LEAST", 0)


def piece(engine: Engine) -> bool:
    """Let the ingest thread write a piece of a save; returns whether there was one."""

    def work() -> bool:
        return next(engine._committer.saver.finish(), False) is None

    return engine._ingest.run(work).result()


def saved_state(path: Path, name: str, known: Events) -> tuple[int, str]:
    """The number of blocks that the state on disk includes, and the state."""
    contents = contents_of(path)
    return contents.applied, digest(ServingState(fitted(name, known), contents).recommender)


@pytest.mark.parametrize(
    ("name", "known"),
    [("felrec-s", NOTHING), ("felrec-s", BASE), ("felrec-q", BASE), ("popularity", BASE), ("decayed-popularity", BASE)],
)
def test_events_during_a_save_are_not_in_it(
    name: str, known: Events, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A post between any two pieces; what is saved is always what the state was after one of the blocks."""
    monkeypatch.setattr(changed_rows, "_ROWS", 2)
    engine = open_engine(tmp_path / "s", fitted(name, known), NEVER)
    states = {0: saved_state(tmp_path / "s", name, known)[1]}
    post(engine, made_up(60))
    states[1] = state_of(engine)
    found, number = set[int](), 0
    while len(found) < 2 and number < 300:
        number += 1
        post(engine, made_up(6, start=1.1e9, users=25, items=40, seed=number))
        states[len(states)] = state_of(engine)
        piece(engine)
        applied, state = saved_state(tmp_path / "s", name, known)
        assert state == states[applied]
        found.add(applied)
    assert len(found) == 2
    assert number > 2  # there were events during the save
    killed = killed_copy(tmp_path / "s", tmp_path / "killed")
    live = state_of(engine)
    engine.close()
    again = open_engine(killed, fitted(name, known))
    assert state_of(again) == live
    again.close()
    assert replayed_offline(killed, fitted(name, known)) == live


def test_a_commit_writes_the_journal_alone_and_a_stop_the_rest(tmp_path: Path) -> None:
    engine = open_engine(tmp_path / "s", fitted("felrec-s"), NEVER)
    for number in range(3):
        post(engine, made_up(30, seed=number))
    assert contents_of(tmp_path / "s").applied == 0
    assert engine.health().unsaved_blocks == 3
    live = state_of(engine)
    engine.close()
    assert saved_state(tmp_path / "s", "felrec-s", NOTHING) == (3, live)


@pytest.mark.parametrize("why", ["seconds", "work"])
def test_it_is_saved_by_itself(why: str, tmp_path: Path) -> None:
    limits = Limits(save_seconds=0.0 if why == "seconds" else math.inf, save_work=0.0 if why == "work" else math.inf)
    engine = open_engine(tmp_path / "s", fitted("felrec-s"), limits)
    post(engine, made_up(300))
    until = time.monotonic() + 60
    while engine.health().unsaved_blocks and time.monotonic() < until:
        time.sleep(0.01)
    assert saved_state(tmp_path / "s", "felrec-s", NOTHING) == (2, state_of(engine))
    engine.close()


def test_saves_take_a_share_of_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow disk makes saves rare, not posts slow."""
    engine = open_engine(tmp_path / "s", fitted("felrec-s"), Limits(save_seconds=0.0, rebuild_after=math.inf))
    write = engine._store.save

    def slowly(*part: object) -> None:
        time.sleep(1.0)
        write(*part)  # type: ignore[arg-type]

    monkeypatch.setattr(engine._store, "save", slowly)
    post(engine, made_up(30))
    save(engine)
    post(engine, made_up(30, seed=2))
    saver = engine._committer.saver
    assert saver._save_at == saver._not_before > time.monotonic()
    monkeypatch.undo()
    engine.close()


def test_a_start_says_how_far_it_is_with_what_was_not_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = open_engine(tmp_path / "s", fitted(), NEVER)
    for number in range(5):
        post(engine, made_up(10, seed=number))
    killed = killed_copy(tmp_path / "s", tmp_path / "killed")
    engine.close()
    monkeypatch.setattr(committer, "_CATCH_UP", 2)
    applied = list[int]()
    again = Engine.open(SqliteStore(killed), fitted(), limits=NEVER, progress=applied.append)
    assert applied == [20, 20, 10]
    again.close()


@pytest.mark.parametrize("behind", [True, False])
def test_other_kernels_for_the_last_blocks_are_mentioned(
    behind: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    engine = open_engine(tmp_path / "s", fitted(), NEVER)
    post(engine, made_up(10))
    save(engine)
    if behind:
        post(engine, made_up(10))
    killed = killed_copy(tmp_path / "s", tmp_path / "killed")
    engine.close()
    for module in (committer, state_saver):
        monkeypatch.setattr(module, "state_kernels", lambda: "others")
    open_engine(killed, fitted(), NEVER).close()
    assert ("the last 1 blocks are applied again by other kernels (others)" in caplog.text) == behind
    assert contents_of(killed).notes[state_saver.KERNELS] == ("others" if behind else state_kernels())
