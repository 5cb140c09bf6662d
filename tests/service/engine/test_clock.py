"""The time of a question, and a machine's clock that jumps or was wrong."""

from __future__ import annotations

import logging
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from operator import add
from pathlib import Path

import pytest

from felrec.answers.types import BestItems
from felrec.pretrained import load_pretrained
from felrec.service.engine.clock import SteadyClock
from felrec.service.engine.engine import Engine
from felrec.service.maintenance.replaying import replay_store
from felrec.store.sqlite import SqliteStore
from stores import contents_of, made_up, post, state_of

START, HOUR, DAY, YEAR = 1.7e9, 3_600.0, 86_400.0, 31_536_000.0
EVENTS = made_up(300, start=START - 300)
NEWEST = START - 1  # the time of the last of them


@dataclass
class Machine:
    """A machine whose clock can be set wrong."""

    wall: float = START
    passed: float = 50.0

    def clock(self) -> SteadyClock:
        return SteadyClock(lambda: self.wall, lambda: self.passed)

    def wait(self, seconds: float) -> None:
        self.wall += seconds
        self.passed += seconds


def opened(path: Path, machine: Machine) -> closing[Engine]:
    return closing(Engine.open(SqliteStore(path), load_pretrained(), empty=True, clock=machine.clock()))


def answers_of(engine: Engine) -> list[BestItems]:
    return [engine.recommend(f"user {nth}", 5) for nth in range(20)]


def test_answers_about_the_past_do_not_change_as_time_passes(tmp_path: Path) -> None:
    machine = Machine()
    with opened(tmp_path / "a.sqlite", machine) as engine:
        post(engine, EVENTS)
        machine.wait(2 * DAY)
        first = answers_of(engine)
        for seconds in (61, HOUR, YEAR):
            machine.wait(seconds)
            assert engine._state.question_time == engine.health().clock == NEWEST
            assert answers_of(engine) == first


def test_while_events_are_live_a_question_is_of_the_present(tmp_path: Path) -> None:
    machine = Machine()
    with opened(tmp_path / "a.sqlite", machine) as engine:
        post(engine, EVENTS)
        for waited in (0.0, HOUR, 22 * HOUR):
            machine.wait(waited)
            assert engine._state.question_time == machine.wall > NEWEST
        machine.wait(DAY)
        assert engine._state.question_time == NEWEST


def test_the_library_has_the_same_rule() -> None:
    model = load_pretrained()
    model.observe((user, item, NEWEST - 299 + nth) for nth, (user, item, *_) in enumerate(EVENTS))
    lists = []
    for waited in (2 * DAY, YEAR, HOUR):
        model.now = partial(add, START, waited)
        lists.append([model.recommend(f"user {nth}") for nth in range(20)])
    assert lists[0] == lists[1] != lists[2]


@pytest.mark.parametrize("jump", [YEAR, -YEAR])
def test_a_jump_of_the_clock_is_said_and_does_no_harm(
    tmp_path: Path, jump: float, caplog: pytest.LogCaptureFixture
) -> None:
    states = []
    for name, wrong in (("steady", 0.0), ("jumping", jump)):
        machine = Machine()
        with opened(tmp_path / name, machine) as engine:
            post(engine, EVENTS)
            machine.wait(60)
            machine.wall += wrong
            assert post(engine, [("user 1", "item 1")]).late == 0
            said = engine.health().clock_problem
            assert ("has jumped 31,536,000 s" in str(said)) if wrong else said is None
            machine.wait(60)
            assert post(engine, [("user 2", "item 2")]).late == 0
            assert engine.health().clock == pytest.approx(START + 120)
            states.append((state_of(engine), answers_of(engine)))
            machine.wall -= wrong
            assert engine.health().clock_problem is None
    assert states[0] == states[1]
    warnings = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == 2  # once when it jumped, and once when it was back
    assert "restart" in warnings[0]


def test_small_corrections_are_followed() -> None:
    machine = Machine()
    clock = machine.clock()
    for correction in (200.0, 200.0, -250.0):
        machine.wall += correction
        assert clock.now() == pytest.approx(machine.wall)
        assert clock.jump == 0


def test_a_store_with_times_of_a_wrong_clock_is_noticed_and_corrected(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One event came while the clock was a year ahead; later ones, with the right clock, were late."""
    ahead = Machine(START + YEAR)
    more = made_up(100, start=START + 600, seed=5)
    with opened(tmp_path / "wrong.sqlite", Machine()) as engine:
        post(engine, EVENTS)
    with opened(tmp_path / "wrong.sqlite", ahead) as engine:
        post(engine, [("user 1", "item 1")])
    right = Machine(START + 1_000)
    with opened(tmp_path / "wrong.sqlite", right) as engine:
        said = str(engine.health().clock_problem)
        assert said in [record.message for record in caplog.records]  # also at the start
        assert post(engine, more).late == 100
    assert "felrec replay --latest" in said
    latest = datetime.fromisoformat(said.rpartition(" ")[2]).replace(tzinfo=UTC).timestamp()
    with SqliteStore(tmp_path / "corrected.sqlite") as new:
        replay_store(contents_of(tmp_path / "wrong.sqlite"), load_pretrained(), new, None, latest=latest)
    with opened(tmp_path / "never.sqlite", right) as engine:
        post(engine, EVENTS)
        post(engine, [("user 1", "item 1", NEWEST)])
        post(engine, more)
        expected = state_of(engine), answers_of(engine)
    with opened(tmp_path / "corrected.sqlite", right) as engine:
        assert (state_of(engine), answers_of(engine)) == expected
        assert engine.health().clock_problem is None
        assert engine.health().events == 401
        assert post(engine, [("user 1", "item 1")]).late == 0
