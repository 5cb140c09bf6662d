"""An engine lets go of users and items without recent events while it serves."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from disks import killed_copy
from felrec.errors import ConfigError, NotFound
from felrec.service.engine.engine import Engine
from felrec.service.engine.serving_state import ServingState
from felrec.service.engine.similarity import Matches
from felrec.service.engine.types import Attributes, IdempotencyKey, Side
from felrec.service.maintenance.importing import taken_before
from felrec.store.protocol import EMPTY_BASE
from felrec.store.sqlite import SqliteStore
from stores import (
    BASE,
    NO_REBUILD,
    Given,
    contents_of,
    fitted,
    fitted_to,
    made_up,
    old_and_new_log,
    open_engine,
    post,
    replayed_offline,
    state_of,
    submit,
)

DAY = 86_400.0
FORGETTING = replace(NO_REBUILD, forget_after=400 * DAY, block=32)
LONG_AGO: list[Given] = [(f"old {n % 20}", f"old {n * 7 % 31}", 1e9 + n) for n in range(300)]
LATELY = made_up(400, start=1e9 + 500 * DAY, users=9, items=9, seed=2)


def pieces(engine: Engine, between: Callable[[int], object], most: int) -> Generator[None, None, None]:
    """The pieces until the engine has other rows; only for the ingest thread."""
    work, generation, number = engine._letting_go, engine._state.generation, 0
    work._begin(0.0)
    while engine._state.generation == generation and number < most:
        work.step()
        work.due = math.inf  # the next one is done here too
        between(number)
        number += 1
        yield


def let_go(engine: Engine, between: Callable[[int], object] = lambda _: None, most: int = 200) -> None:
    engine._ingest.run(pieces(engine, between, most)).result(timeout=60)


def begun(path: Path, name: str = "felrec-s") -> Engine:
    engine = open_engine(path, fitted(name), FORGETTING)
    post(engine, LONG_AGO)
    post(engine, LATELY)
    return engine


def names(path: Path) -> set[str | None]:
    contents = contents_of(path)
    return {*contents.users, *contents.items}


def answers(engine: Engine) -> list[object]:
    return [engine.recommend(f"user {n}", 9) for n in range(9)]


@pytest.mark.parametrize("name", ["felrec-s", "felrec-q", "decayed-popularity"])
def test_what_is_left_is_durable_and_replayable(name: str, tmp_path: Path) -> None:
    engine, without = begun(tmp_path / "s", name), open_engine(tmp_path / "t", fitted(name), FORGETTING)
    answers(engine)
    let_go(engine)
    post(without, LATELY)
    assert engine._state.users.known == 9
    assert engine.bias().requests == 0  # rows of earlier answers mean other items now
    assert answers(engine) == answers(without)
    with pytest.raises(NotFound):
        engine.user("old 3")
    post(engine, made_up(50, start=1e9 + 501 * DAY, users=12, items=12, seed=3))
    before, live = answers(engine), state_of(engine)
    engine.close()
    without.close()
    assert not any(name and name.startswith("old") for name in names(tmp_path / "s"))
    assert replayed_offline(tmp_path / "s", fitted(name)) == live
    again = open_engine(tmp_path / "s", fitted(name), FORGETTING)
    assert state_of(again) == live
    assert answers(again) == before
    assert again.health().events == 450
    again.close()
    assert [file.name for file in tmp_path.glob(".*")] == []


def test_posts_and_changes_go_on_meanwhile(tmp_path: Path) -> None:
    """A silent user who comes back is a new user, with the events since then."""
    engine, key = begun(tmp_path / "s"), IdempotencyKey("monday", b"body")
    engine.put_item("old 7", Attributes(title="Old")).result()
    engine.put_item("item 1", Attributes(title="Before")).result()
    first = post(engine, [("user 1", "item 1", 1e9 + 501 * DAY)], key)
    waiting = list[Future[Any]]()

    def meanwhile(number: int) -> None:
        if number == 4:
            waiting.append(submit(engine, [("old 3", "item 2", 1e9 + 502 * DAY), ("new", "new item")]))
            waiting.append(engine.put_item("item 1", Attributes(title="After")))
            waiting.append(engine.put_item("item 2", Attributes(tags=("hot",))))

    let_go(engine, meanwhile)
    assert all(one.done() for one in waiting)
    for again in (False, True):
        opened = open_engine(tmp_path / "s", fitted("felrec-s"), FORGETTING) if again else engine
        assert [entry.id for entry in opened.user("old 3").history] == ["item 2"]
        assert opened.item("item 1").title == "After"
        assert opened.item("old 7").title == "Old"
        assert opened._state.attributes.tagged(["hot"]).tolist() == [opened._state.items.row("item 2")]
        assert post(opened, [("user 1", "item 1", 1e9 + 501 * DAY)], key) == first
        assert opened.health().events == 403
        opened.close()


def test_an_erased_user_does_not_come_back(tmp_path: Path) -> None:
    engine, erased = begun(tmp_path / "s"), list[object]()

    def meanwhile(number: int) -> None:
        if number == 8:
            erased.append(engine.erase_user("user 1"))

    let_go(engine, meanwhile)
    assert len(erased) == 1
    assert engine._state.users.row("user 1") < 0
    engine.close()
    assert "user 1" not in names(tmp_path / "s")
    assert list(tmp_path.glob(".s.new*")) == []


def test_a_kill_at_any_piece_loses_nothing(tmp_path: Path) -> None:
    engine, copies = begun(tmp_path / "s"), list[Path]()
    let_go(engine, lambda number: copies.append(killed_copy(tmp_path / "s", tmp_path / f"killed {number}")))
    engine.close()
    kept = []
    for path in copies:
        again = open_engine(path, fitted("felrec-s"), FORGETTING)
        kept.append(again.health().events)
        again.close()
        assert replayed_offline(path, fitted("felrec-s")) == state_of(again)
    assert len(kept) > 5
    assert kept == [700] * (len(kept) - 1) + [400]


def test_little_is_not_worth_it(tmp_path: Path) -> None:
    engine = open_engine(tmp_path / "s", fitted("felrec-s"), FORGETTING)
    post(engine, LONG_AGO[:1])
    post(engine, made_up(400, start=1e9 + 500 * DAY, users=50, items=50, seed=2))
    let_go(engine, most=20)
    assert engine._state.generation == 0
    assert engine._state.users.row("old 0") >= 0
    engine.close()


def test_a_store_that_started_with_a_run_is_built_from_the_log_of_that(tmp_path: Path) -> None:
    """An erased user of the run does not come back, and an import of the log adds nothing."""
    log, recent = old_and_new_log(), 100
    model = fitted_to(log)
    engine = Engine.open(SqliteStore(tmp_path / "s"), model, limits=FORGETTING, log=log)
    post(engine, LATELY)
    engine.erase_user("new user 3").result()
    let_go(engine)
    without = open_engine(tmp_path / "t", fitted("felrec-s"), FORGETTING)
    rows = zip(log.users[recent:].tolist(), log.items[recent:].tolist(), log.times[recent:].tolist(), strict=True)
    given = [(str(log.user_ids.series[user]), str(log.item_ids.series[item]), time) for user, item, time in rows]
    post(without, [one for one in given if one[0] != "new user 3"])
    post(without, LATELY)
    assert (engine._state.base, engine._state.base_events) == (EMPTY_BASE, None)
    assert state_of(engine) == state_of(without)
    before = answers(engine)
    assert before == answers(without)
    assert taken_before(EMPTY_BASE, engine._store.besides().notes, log) == len(log)  # type: ignore[attr-defined]
    engine.close()
    without.close()
    assert not {"old user 1", "new user 3"} & names(tmp_path / "s")
    again = Engine.open(SqliteStore(tmp_path / "s"), model, limits=FORGETTING, log=log)
    assert answers(again) == before
    again.close()


def test_it_must_be_possible(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="training log of that run with --log"):
        open_engine(tmp_path / "s", fitted("felrec-s", BASE), FORGETTING)
    with pytest.raises(ConfigError, match="not the log that the store started with"):
        Engine.open(SqliteStore(tmp_path / "u"), fitted("felrec-s", BASE), limits=FORGETTING, log=old_and_new_log())
    with pytest.raises(ConfigError, match="felrec forget"):
        open_engine(tmp_path / "t", fitted("repeat"), FORGETTING)


def test_who_asks_while_rows_change_gets_an_answer_of_the_new_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = begun(tmp_path / "s")
    match = engine._matches

    def switching(find: Callable[[ServingState, int], Matches], of: Side, name: str) -> tuple[int, Matches]:
        matches = match(find, of, name)
        if engine._state.generation == 0:
            let_go(engine)
        return matches

    monkeypatch.setattr(engine, "_matches", switching)
    near = engine.neighbours("user 1", 5)
    assert engine._state.generation == 1
    assert near == engine.neighbours("user 1", 5)
    engine.close()
