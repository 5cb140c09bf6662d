"""Runs and stores that felrec 0.1.0 wrote (format 1) still open, and still answer as they did."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from torch.nn.functional import normalize

import felrec
from felrec.abilities import Representing
from felrec.answers.types import NearItem
from felrec.data.events import EventColumns, Rows
from felrec.errors import ConfigError
from felrec.fitted import Scored
from felrec.model.felrec_s import FELRecS
from felrec.recommender import Recommender
from felrec.service.engine.engine import Engine
from felrec.service.engine.types import IdempotencyKey
from felrec.service.maintenance.replaying import replay_store
from felrec.store.sqlite import SqliteStore
from stores import contents_of, post, state_of

FIXTURES = Path(__file__).parent / "fixtures" / "format-1"
ANSWERS = json.loads((FIXTURES / "answers.json").read_text())
RUN_OF = {"felrec-s.sqlite": "felrec-s", "pretrained.sqlite": "first-weights"}  # those that 0.1.0 was bundled with
KEY = IdempotencyKey("first post", b"its body")

Top = Iterable[NearItem] | Iterable[Scored]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy: opening a store writes to it."""
    return shutil.copytree(FIXTURES, tmp_path / "format-1")


def model_of(store: Path) -> felrec.FittedModel:
    return felrec.load(store.parent / RUN_OF[store.name])


@contextmanager
def opened(store: Path) -> Iterator[Engine]:
    with closing(Engine.open(SqliteStore(store, "write"), model_of(store))) as engine:
        yield engine


def cached_vectors(model: Recommender, rows: Rows) -> Any:
    """The cached vectors of items; FELRec-S compares items by counts today."""
    if isinstance(model, FELRecS):
        assert model.signals.vectors is not None
        return normalize(model.signals.vectors.items.read(rows), dim=1).numpy()
    return cast(Representing, model).item_vectors(rows).numpy()


def vectors_of(engine: Engine) -> Callable[[Sequence[str]], Any]:
    state = engine._state
    return lambda items: cached_vectors(state.recommender, state.items.rows(items))


def nearest(vectors: Callable[[Sequence[str]], Any], item: str, others: Sequence[str]) -> list[Scored]:
    """The five items with the nearest vectors: what 0.1.0 answered when asked for similar items."""
    cosines = vectors(others) @ vectors([item])[0]
    return [Scored(others[at], float(cosines[at])) for at in np.argsort(-cosines)[:5]]


def assert_same(found: Top, expected: list[tuple[str | int, float]], missing: int = 0, near: float = 2e-4) -> None:
    """The same ids with the same scores, whatever the order of ties; up to `missing` ids may differ."""
    scores, wanted = {one.id: one.score for one in found}, dict(expected)
    assert len(scores) == len(wanted) == 5
    shared = scores.keys() & wanted.keys()
    assert len(shared) >= 5 - missing
    assert {name: scores[name] for name in shared} == pytest.approx({name: wanted[name] for name in shared}, abs=near)


@pytest.mark.parametrize("name", ANSWERS["runs"])
def test_a_run_answers_as_it_did(folder: Path, name: str) -> None:
    assert json.loads((folder / name / "manifest.json").read_text())["format"] == 1
    model, answers = felrec.load(folder / name), ANSWERS["runs"][name]
    for user, expected in answers["recommend"]:
        assert_same(model.recommend(user, 5), expected)


@pytest.mark.parametrize("name", ["felrec-s", "felrec-q"])
def test_the_vectors_of_a_run_are_as_they_were(folder: Path, name: str) -> None:
    model = felrec.load(folder / name)

    def vectors(items: Sequence[str]) -> Any:
        return cached_vectors(model.recommender, model.item_ids.rows(items))

    for item, expected in ANSWERS["runs"][name]["similar_items"]:
        others = [str(other) for other in model.item_ids.ids(range(len(model.item_ids))) if other != item]
        assert_same(nearest(vectors, item, others), expected)


@pytest.mark.parametrize("name", ANSWERS["runs"])
def test_a_run_is_as_good_as_it_was_on_its_own_log(folder: Path, name: str) -> None:
    report = felrec.evaluate(felrec.load(folder / name), felrec.read_log(folder / "log.csv"))
    assert report.cache == "kept"  # it was recognised as its own log
    expected = ANSWERS["runs"][name]["metrics"]
    assert {metric: report.metric(metric) for metric in expected} == pytest.approx(expected, abs=2e-4)


@pytest.mark.parametrize("name", RUN_OF)
def test_a_store_knows_what_it_knew(folder: Path, name: str) -> None:
    answers = ANSWERS["stores"][name]
    with opened(folder / name) as engine:
        assert_known(engine, answers)
    with opened(folder / name) as engine:  # it was not spoiled by being opened
        assert_known(engine, answers)


def assert_known(engine: Engine, answers: dict[str, Any]) -> None:
    health = engine.health()
    assert {name: getattr(health, name) for name in answers["health"]} == answers["health"]
    users = [engine.user(user.id, 3) for user in engine.search_users("", 1_000)]
    known = {user.id: [user.events, [[past.id, past.timestamp] for past in user.history]] for user in users}
    assert known == answers["users"]
    items = [engine.item(item.id) for item in engine.search_items("", 1_000)]
    assert {item.id: [item.events, item.title, [*item.tags], item.available] for item in items} == answers["items"]


@pytest.mark.parametrize("name", RUN_OF)
def test_a_store_recommends_as_it_did(folder: Path, name: str) -> None:
    """Its last events came one by one in the store of a run: 0.1.0 faded counts later there, so scores are near."""
    missing, near = (1, 0.3) if name == "felrec-s.sqlite" else (0, 2e-4)
    answers = ANSWERS["stores"][name]
    with opened(folder / name) as engine:
        for user, expected in answers["recommend"]:
            assert_same(engine.recommend(user, 5).items, expected, missing, near)
        there = [found.id for found in engine.search_items("", 1_000) if engine.item(found.id).available]
        for item, expected in answers["similar_items"]:
            assert_same(nearest(vectors_of(engine), item, [name for name in there if name != item]), expected)


@pytest.mark.parametrize("name", RUN_OF)
def test_a_store_goes_on(folder: Path, name: str) -> None:
    with opened(folder / name) as engine:
        before = engine.health().events
        post(engine, [("somebody new", "something new", 6e9), ("somebody new", "item 1", 6e9 + 1)])
        assert engine.health().events == before + 2
        state = state_of(engine)
    with opened(folder / name) as engine:
        assert state_of(engine) == state
        assert [event.id for event in engine.user("somebody new").history] == ["item 1", "something new"]


def test_a_store_goes_on_with_kinds_of_events(folder: Path) -> None:
    path = folder / "pretrained.sqlite"
    with opened(path) as engine:
        before = contents_of(path).events
        assert before.weights is None
        weights = np.array([3, 0, -1], dtype=np.float32)
        events = EventColumns(["ada"] * 3, ["item 1", "item 2", "item 3"], np.full(3, np.nan), weights=weights)
        engine.submit(events).result(60)
        state = state_of(engine)
    with opened(path) as engine:
        assert state_of(engine) == state
        assert "item 3" not in [item.id for item in engine.recommend("ada", 1_000).items]
    kept = contents_of(path).events
    assert kept.weights is not None
    np.testing.assert_array_equal(kept.weights, [*[np.nan] * len(before), 3, 0, -1])


def test_a_store_remembers_the_key_of_a_post_and_who_was_erased(folder: Path) -> None:
    path = folder / "felrec-s.sqlite"
    accepted, late, events = ANSWERS["stores"][path.name]["first_receipt"]
    with opened(path) as engine:
        before = engine.health().events
        receipt = post(engine, [("0", "item 0", 5e9)], KEY)
        assert (receipt.accepted, receipt.late, receipt.events) == (accepted, late, events)
        assert engine.health().events == before
        assert engine.known("user", ["erased", "late comer"]) == ["late comer"]
        assert engine.known("item", ["only theirs", "fresh"]) == ["fresh"]


def test_the_keys_of_a_store_are_kept_for_a_day_of_service(folder: Path) -> None:
    """In format 1 they expired by the clock of the machine."""
    path = folder / "felrec-s.sqlite"
    with opened(path) as engine:
        now = engine._store.seconds()
    kept = contents_of(path)
    assert kept.answers
    assert {round(answer.expires - now, -2) for answer in kept.answers} == {86_400}


def test_a_store_can_be_rebuilt_from_its_journal_and_the_log_of_its_run(folder: Path) -> None:
    path, new = folder / "felrec-s.sqlite", folder / "new.sqlite"
    with SqliteStore(new) as store:
        replay_store(contents_of(path), model_of(path), store, felrec.read_log(folder / "log.csv"))
    old, rebuilt = contents_of(path), contents_of(new)
    assert len(rebuilt.events) == ANSWERS["stores"][path.name]["health"]["events"]
    assert rebuilt.users == old.users[: len(rebuilt.users)]  # every id keeps its row
    assert {*rebuilt.users} - {None} == {*old.users} - {None}
    assert rebuilt.attributes == old.attributes


def test_a_run_is_resumed_with_settings_as_they_are_spelled_now(folder: Path) -> None:
    log, signals = felrec.read_log(folder / "log.csv"), ["trend", "repetition", "together", "follows", "vectors"]
    model = felrec.train(log, "felrec-s", folder / "felrec-s", {"signals": [*signals, "profile"]}, resume=True)
    assert model.name == "felrec-s"
    with pytest.raises(ConfigError, match="was started with signals="):
        felrec.train(log, "felrec-s", folder / "felrec-s", {"signals": signals}, resume=True)
