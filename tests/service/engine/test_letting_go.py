"""Users and items without recent events are let go: the rest is what a store without their events would be."""

from __future__ import annotations

from pathlib import Path

import pytest

from felrec.data.events import Events
from felrec.errors import DataError
from felrec.service.engine.limits import Limits
from felrec.service.engine.types import Attributes
from felrec.service.maintenance.journal import Journal
from felrec.service.maintenance.letting_go import LetGo, without_silent
from felrec.service.maintenance.replaying import fill_store, journal_of, notes_to_keep
from felrec.service.maintenance.rewriting import new_store, to_rewrite
from stores import NOTHING, Given, contents_of, fitted, made_up, open_engine, post, replayed_offline, state_of

DAY = 86_400.0
LONG_AGO: list[Given] = [(f"old {n % 20}", f"old {n * 7 % 31}", 1e9 + n) for n in range(300)]
MIXED: list[Given] = [("user 1", "old item", 1e9), ("old user", "item 1", 1e9 + 1), ("user 2", "item 1", 1e9 + 2)]
LATELY = made_up(400, start=1e9 + 500 * DAY, users=9, items=9, seed=2)


def forget(path: Path, seconds: float = 400 * DAY, now: float = 2e9) -> LetGo:
    with to_rewrite(path) as contents:
        journal, gone = without_silent(journal_of(contents, None), seconds, now)
        with new_store(path) as new:
            fill_store(new, fitted(), journal.blocks(Limits()), contents, notes_to_keep(contents, None))
    return gone


def test_the_rest_is_a_store_that_never_had_the_others(tmp_path: Path) -> None:
    engine, without = open_engine(tmp_path / "s"), open_engine(tmp_path / "t")
    post(engine, LONG_AGO)
    post(engine, MIXED)
    post(engine, LATELY)
    engine.put_item("old item", Attributes(title="Tea")).result()
    engine.close()
    post(without, [MIXED[2], *LATELY])
    users = {event[0] for event in LONG_AGO} | {"old user"}
    items = {event[1] for event in LONG_AGO} | {"old item"}
    assert forget(tmp_path / "s") == LetGo(len(users), len(items), 302)
    left = open_engine(tmp_path / "s")
    assert state_of(left) == state_of(without)
    assert left.recommend("user 3", 9) == without.recommend("user 3", 9)
    assert left.item("old item").title == "Tea"  # the platform said so, and has not deleted it
    known = contents_of(tmp_path / "s")
    assert not users & set(known.users)
    assert not items & set(known.items)
    left.close()
    without.close()
    assert replayed_offline(tmp_path / "s") == state_of(without)


def test_whoever_has_a_recent_event_keeps_it(tmp_path: Path) -> None:
    engine = open_engine(tmp_path / "s")
    post(engine, [("ada", "tea", 1e9), ("bob", "tea", 1e9 + 400 * DAY), ("bob", "jam", 1e9 - DAY)])
    engine.close()
    assert forget(tmp_path / "s", 400 * DAY) == LetGo(users=0, items=1, events=1)
    assert contents_of(tmp_path / "s").users == ["ada", "bob"]
    assert contents_of(tmp_path / "s").items == ["tea"]
    assert forget(tmp_path / "s", 399 * DAY) == LetGo(users=1, items=0, events=1)
    assert contents_of(tmp_path / "s").users == ["bob"]


def test_an_event_from_the_future_makes_nobody_older() -> None:
    journal = Journal(Events.of([0, 1], [0, 1], [1e9, 9e9]), ["ada", "bob"], ["tea", "jam"])
    assert without_silent(journal, 400 * DAY, now=1e9 + DAY)[1] == LetGo(0, 0, 0)
    assert without_silent(journal, 400 * DAY, now=9e9)[1] == LetGo(1, 1, 1)


def test_a_store_without_events_has_nothing_to_let_go() -> None:
    with pytest.raises(DataError, match="no events"):
        without_silent(Journal(NOTHING, [], []), DAY, 0.0)
