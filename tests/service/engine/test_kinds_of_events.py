"""Events with kinds: however they come in, the state is the same, and it survives; what users reject is not offered."""

from __future__ import annotations

import json
from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from felrec.data.events import EventColumns, Events
from felrec.data.kinds import KindTable
from felrec.data.reading.sources import read_log
from felrec.data.reweighing import Reweighing
from felrec.errors import ConfigError
from felrec.evaluation.protocols import walk
from felrec.evaluation.rules import BLOCK
from felrec.fitted import FittedModel
from felrec.model import felrec_s as felrec_s_module
from felrec.model.felrec_s_settings import FELRecSSettings
from felrec.recommender import usable
from felrec.service.engine.engine import Engine
from felrec.service.engine.types import Question
from felrec.service.http.event_parsing import read_events
from felrec.service.maintenance.exporting import events_of
from felrec.service.maintenance.importing import import_log
from felrec.service.maintenance.replaying import replay_store
from felrec.store.sqlite import SqliteStore
from stores import BASE, contents_of, digest, fitted, open_engine, state_of

TABLE = "view=context,buy=2.5,dislike=negative,hate=-3,bin=ignore,value<2=negative"
KINDS = ["view", "buy", "dislike", "hate", "bin", "love", None]


def made_up(count: int, seed: int) -> pl.DataFrame:
    """Events of ten users with twelve items, one a second."""
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "user": [f"user {n}" for n in rng.integers(10, size=count)],
            "item": [f"item {n}" for n in rng.integers(12, size=count)],
            "timestamp": 1e9 + np.arange(count),
            "kind": rng.choice(np.array(KINDS, dtype=object), count).tolist(),
            "value": rng.integers(1, 6, size=count).astype(float),
        }
    )


def columns_of(frame: pl.DataFrame) -> EventColumns:
    body = json.dumps(frame.to_dicts()).encode()
    return read_events(body, lines=False, now=2e9, kinds=KindTable.parse(TABLE)).events


def submitted(path: Path, columns: EventColumns, model: FittedModel, size: int = 10_000) -> str:
    """The state of a store after posts of so many events."""
    with closing(open_engine(path, model)) as engine:
        for block in columns.blocks(size):
            engine.submit(block).result(60)
        return state_of(engine)


@pytest.mark.parametrize("name", ["felrec-s", "felrec-q", "popularity"])
@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(count=st.integers(20, 300), seed=st.integers(0, 99))
def test_every_way_in_gives_the_same_state(
    tmp_path_factory: pytest.TempPathFactory, name: str, count: int, seed: int
) -> None:
    folder, frame = tmp_path_factory.mktemp("kinds"), made_up(count, seed)
    frame.write_csv(folder / "log.csv")
    log = read_log(folder / "log.csv", kinds=TABLE)
    offline = fitted(name)
    offline.recommender.reset()
    for block in log.events.blocks(BLOCK["online"]):
        offline.recommender.observe(usable(offline.recommender, block))
    expected = digest(offline.recommender)

    library = fitted(name)
    library.recommender.reset()
    library.observe(read_log(frame, kinds=TABLE))
    assert digest(library.recommender) == expected

    with closing(open_engine(folder / "imported", fitted(name))) as engine:
        assert import_log(engine, log).events == len(log)
        imported = state_of(engine)
    posted = submitted(folder / "posted", columns_of(frame), fitted(name))
    assert imported == posted
    exported = events_of(contents_of(folder / "posted"))
    exported.write_csv(folder / "exported.csv")
    with closing(open_engine(folder / "again", fitted(name))) as engine:
        import_log(engine, read_log(folder / "exported.csv"))
        assert state_of(engine) == posted
    assert events_of(contents_of(folder / "again")).equals(exported)


@pytest.mark.parametrize("name", ["felrec-s", "felrec-q"])
@pytest.mark.parametrize("size", [1, 7, 1_000])
def test_a_restart_and_a_replay_give_the_same_bits(tmp_path: Path, name: str, size: int) -> None:
    with closing(open_engine(tmp_path / "s", fitted(name))) as engine:
        for block in columns_of(made_up(200, 1)).blocks(size):
            engine.submit(block).result(60)
        unsaved = partial(engine._store.backup, tmp_path / "unsaved")
        engine._ingest.run(unsaved).result(60)  # its start has to apply blocks again
        state = state_of(engine)
    with SqliteStore(tmp_path / "replayed") as new:
        replay_store(contents_of(tmp_path / "s"), fitted(name), new, None)
    assert contents_of(tmp_path / "unsaved").applied < contents_of(tmp_path / "s").applied
    for path in ("s", "unsaved", "replayed"):
        with closing(open_engine(tmp_path / path, fitted(name))) as engine:
            assert state_of(engine) == state
    exported = [events_of(contents_of(tmp_path / path)) for path in ("s", "replayed")]
    assert exported[0].equals(exported[1])


@pytest.mark.parametrize("name", ["felrec-s", "felrec-q"])
def test_other_weights_give_the_store_of_another_table(tmp_path: Path, name: str) -> None:
    log, frame = tmp_path / "log.csv", made_up(300, 5)
    frame.write_csv(log)
    for path, table in (
        ("before", "view=context,buy=3,dislike=negative,bin=7"),
        ("other", "view=0.5,buy=5,bin=ignore"),
    ):
        with closing(open_engine(tmp_path / path, fitted(name))) as engine:
            import_log(engine, read_log(log, kinds=table))
    contents, change = contents_of(tmp_path / "before"), "context=0.5,3=5,negative=1,7=ignore"
    with SqliteStore(tmp_path / "after") as new:
        replay_store(contents, fitted(name), new, None, weights=Reweighing.parse(change))
    with (
        closing(open_engine(tmp_path / "after", fitted(name))) as after,
        closing(open_engine(tmp_path / "other", fitted(name))) as other,
    ):
        assert state_of(after) == state_of(other)
        assert recommended(after, "user 3") == recommended(other, "user 3")
    assert events_of(contents_of(tmp_path / "after")).equals(events_of(contents_of(tmp_path / "other")))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("3", "write it as 3=5"),
        ("purchase=5", "give a weight from"),
        ("3=lots", "give a weight from"),
        ("ignore=3", "not in a store"),
        ("0=1,context=2", "two entries"),
    ],
)
def test_mistakes_in_other_weights(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=f"--weights.*{words}"):
        Reweighing.parse(text)


def recommended(engine: Engine, user: str) -> set[str]:
    return {item.id for item in engine.recommend(user, 100, exclude_seen=False).items}


def of(*rows: tuple[str, str, float]) -> EventColumns:
    """Events by user, item and weight."""
    users, items, weights = zip(*rows, strict=True)
    return EventColumns(
        list(users), list(items), np.full(len(rows), np.nan), weights=np.array(weights, dtype=np.float32)
    )


def test_what_a_user_rejects_is_not_offered_until_they_take_it(tmp_path: Path) -> None:
    every = {"tea", "jam", "rye"}
    with closing(open_engine(tmp_path / "s", fitted("felrec-s"))) as engine:
        engine.submit(of(*((user, item, 1.0) for user in ("ada", "bob") for item in every))).result(60)
        assert recommended(engine, "ada") == every
        engine.submit(of(("ada", "tea", -1), ("bob", "jam", -1), ("bob", "jam", 1), ("cyd", "rye", -1))).result(60)
        assert recommended(engine, "ada") == every - {"tea"}
        assert recommended(engine, "bob") == every
        assert recommended(engine, "cyd") == every - {"rye"}  # who has no other event
    with closing(open_engine(tmp_path / "s", fitted("felrec-s"))) as engine:
        assert recommended(engine, "ada") == every - {"tea"}
        engine.erase_user("ada").result(60)
        engine.submit(of(("ada", "jam", 1))).result(60)
        assert recommended(engine, "ada") == every
    assert contents_of(tmp_path / "s").events.weights is not None


@pytest.mark.parametrize("exclude_seen", [False, True])
def test_what_a_user_rejects_is_not_in_their_trending_items(tmp_path: Path, exclude_seen: bool) -> None:
    """They may be in the arm of a test that gets trending items."""
    with closing(open_engine(tmp_path / "s", fitted("felrec-s"))) as engine:
        engine.submit(of(("bob", "tea", 1), ("bob", "jam", 1), ("ada", "jam", -1))).result(60)
        found = engine.trending(Question("ada", k=10, exclude_seen=exclude_seen)).items
        assert [item.id for item in found] == ["tea"]


@pytest.mark.parametrize("hours", [None, 24.0])
def test_only_what_counts_is_popular(tmp_path: Path, hours: float | None) -> None:
    with closing(open_engine(tmp_path / "s", fitted("felrec-s"))) as engine:
        events = [("ada", "bad", -1.0), ("bob", "bad", -1.0), ("cyd", "bad", 1.0), ("cyd", "worst", -1.0)]
        events += [("ada", "tea", 3.0), ("bob", "tea", 1.0), ("ada", "viewed", 0.0)]
        engine.submit(of(*events)).result(60)
        listed = engine.list_items("popular", Question(k=10), hours=hours)
        assert [(item.id, item.value) for item in listed] == [("tea", 2), ("bad", 1)]
        assert [item.id for item in engine.list_items("newest", Question(k=10), hours=hours)] == [
            "viewed",
            "tea",
            "bad",
        ]


def test_an_item_that_was_only_rejected_is_not_offered(tmp_path: Path) -> None:
    with closing(open_engine(tmp_path / "s", fitted("felrec-s"))) as engine:
        engine.submit(of(("ada", "tea", 1), ("ada", "jam", 1), ("bob", "bad", -1))).result(60)
        assert recommended(engine, "ada") == {"tea", "jam"}
        engine.submit(of(("bob", "bad", 1))).result(60)
        assert recommended(engine, "ada") == {"tea", "jam", "bad"}


def test_what_was_rejected_before_a_store_began_is_not_offered(tmp_path: Path) -> None:
    against = Events.of([3], [5], [BASE.times[-1] + 1], [-1])
    model = fitted("felrec-s", Events.joined([BASE, against]))
    assert not {5} & {one.id for one in model.recommend(3, 100, exclude_seen=False)}
    with closing(open_engine(tmp_path / "s", model)) as engine:
        assert "5" not in recommended(engine, "3")
        assert "5" in recommended(engine, "4")
        engine.erase_user("4").result(60)  # it rewrites parts of the base
    with closing(open_engine(tmp_path / "s", fitted("felrec-s", Events.joined([BASE, against])))) as engine:
        assert "5" not in recommended(engine, "3")


def test_a_model_follows_what_users_reject() -> None:
    model = fitted("felrec-s")
    frame = pl.DataFrame({"user": list("aabba"), "item": list("xyxyx"), "timestamp": range(5)})
    model.observe(read_log(frame.with_columns(event_weight=pl.Series([1.0, 1.0, 1.0, 1.0, -1.0]))))
    assert {one.id for one in model.recommend("a", exclude_seen=False)} == {"y"}
    assert {one.id for one in model.recommend("b", exclude_seen=False)} == {"x", "y"}
    model.observe([("a", "x", 9)])
    assert {one.id for one in model.recommend("a", exclude_seen=False)} == {"x", "y"}


@pytest.mark.parametrize("name", ["felrec-s", "felrec-q", "popularity"])
@pytest.mark.parametrize("exclude_seen", [False, True])
def test_only_what_counts_is_a_target(name: str, exclude_seen: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    events = read_log(made_up(400, 3), kinds=TABLE).events
    ranks = []
    for compiled in (True, False):
        if not compiled:
            monkeypatch.setattr(felrec_s_module, "library", lambda: None)
        model = fitted(name).recommender
        model.reset()
        results = walk(model, events, 0, len(events), exclude_seen=exclude_seen, block=50)
        assert results.events.tolist() == np.flatnonzero(events.counts).tolist()
        ranks.append(results.rank)
    np.testing.assert_allclose(ranks[0], ranks[1])


def test_rejected_items_are_not_ranked_for_their_users() -> None:
    """Item 0 is the most popular, but user 9 rejected it."""
    users, items = [0, 1, 2, 3, 9, 8, 9], [0, 0, 0, 1, 0, 1, 1]
    events = Events.of(users, items, range(7), [1, 1, 1, 1, -1, 1, 1])
    model = fitted("popularity").recommender
    results = walk(model, events, 0, 7, block=1)
    assert results.rank[-2:].tolist() == [1, 0]


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("size", [1, 100])
def test_a_user_adds_the_weight_of_a_kind_once(size: int, compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that nobody pushes an item by repeating an event; what counts more still counts."""
    if not compiled:
        monkeypatch.setattr(felrec_s_module, "library", lambda: None)
    weights = [0, 0, 1, 1, 5, 5, 1, 0, 5]
    events = Events.of([0] * 9, [3] * 9, np.zeros(9), weights)
    model = felrec_s_module.felrec_s(FELRecSSettings(width=8, history_length=12))
    for block in events.blocks(size):
        model.observe(block)
    assert model.signals.trend
    assert model.signals.trend.counts.decayed(np.array([3], np.int32))[0, -1] == pytest.approx(6, rel=1e-3)
    np.testing.assert_array_equal(model.signals.recent.users.recent(np.array([0]))[0][0, -9:], [3] * 9)
