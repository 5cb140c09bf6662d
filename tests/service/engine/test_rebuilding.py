"""After an erasure the state is rebuilt in the background: then it is bit for bit that of a replay of the store."""

from __future__ import annotations

import math
import time
from itertools import islice
from pathlib import Path

import pytest

from disks import killed_copy
from felrec.data.events import Events
from felrec.errors import StoreFull
from felrec.pretrained import load_pretrained
from felrec.service.engine import changed_rows, rebuilding
from felrec.service.engine.engine import Engine
from felrec.service.engine.limits import Limits
from felrec.service.maintenance.replaying import replay_store
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
    rebuilt,
    replayed_offline,
    state_of,
)

ERASED = ("user 3", "user 11")
MODELS = ["felrec-s", "felrec-q", "popularity", "decayed-popularity", "repeat"]


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rebuilding, "_SECONDS", 0.0)  # one block
    monkeypatch.setattr(changed_rows, "_ROWS", 2)


def filled(path: Path, name: str = "felrec-s", known: Events = NOTHING) -> Engine:
    """An engine whose state stays as erasures leave it, unless `rebuild` is called."""
    engine = open_engine(path, fitted(name, known=known))
    for number in range(8):
        post(engine, made_up(40, start=1e9 + 1_000 * number, seed=number))
    post(engine, [("user 3", "the last item", 1.1e9), ("the last user", "item 2", 1.1e9)])
    return engine


def steps(engine: Engine, most: int | None = None) -> int:
    """Let the ingest thread do pieces of the rebuild and of saving its state, and return their number."""
    pieces = engine._ingest.run(lambda: [*islice(rebuilt(engine), most)]).result()
    return len(pieces)


def state_after_more(engine: Engine) -> str:
    """The state once the last rows are not those of erased users and items, which a replay does not have."""
    post(engine, [("new user", "new item", 2e9), *made_up(20, start=2e9)])
    return state_of(engine)


def erased(engine: Engine) -> None:
    for user in (*ERASED, "the last user"):
        engine.erase_user(user).result()


def replayed(path: Path, name: str = "felrec-s") -> str:
    model, new = fitted(name), path.with_name(f"replay of {path.name}")
    with SqliteStore(path, "read") as old, SqliteStore(new) as store:
        replay_store(old.load(), model, store, None)
    contents_of(new)  # verified
    return digest(model.recommender)


@pytest.mark.parametrize("name", MODELS)
def test_the_rebuilt_state_is_that_of_a_replay(name: str, tmp_path: Path) -> None:
    engine = filled(tmp_path / "s", name)
    for user in ERASED:
        engine.erase_user(user).result()
    assert engine.health().rebuilding == (name != "repeat")  # which is rebuilt by the erasure itself
    steps(engine)
    assert not engine.health().rebuilding
    live = state_after_more(engine)
    engine.close()
    assert replayed(tmp_path / "s", name) == live
    assert replayed_offline(tmp_path / "s", fitted(name)) == live
    again = open_engine(tmp_path / "s", fitted(name))
    assert state_of(again) == live
    again.close()


def test_every_answer_is_that_of_a_replay_with_the_bundled_weights(tmp_path: Path) -> None:
    no_rebuild = Limits(rebuild_after=math.inf)
    engine = Engine.open(SqliteStore(tmp_path / "s"), load_pretrained(), limits=no_rebuild, empty=True)
    for number in range(6):
        post(engine, made_up(200, start=1e9 + 1_000 * number, users=50, items=100, seed=number))
    for user in (1, 2, 3, 4, 5):
        engine.erase_user(f"user {user}").result()
    users = [user.id for user in engine.search_users("", 100)]
    early = {user: engine.recommend(user).items for user in users}
    steps(engine)
    live = {user: engine.recommend(user).items for user in users}
    engine.close()
    with SqliteStore(tmp_path / "s", "read") as old, SqliteStore(tmp_path / "new") as new:
        replay_store(old.load(), load_pretrained(), new, None)
    again = Engine.open(SqliteStore(tmp_path / "new"), load_pretrained(), limits=no_rebuild)
    fresh = {user: again.recommend(user).items for user in users}
    again.close()
    assert len(users) == 45
    assert early != live  # so the rebuild matters
    assert [[item.id for item in fresh[user]] for user in users] == [[item.id for item in live[user]] for user in users]


def test_rows_of_erased_users_at_the_end_survive_a_restart(tmp_path: Path) -> None:
    engine = filled(tmp_path / "s")
    erased(engine)
    steps(engine)
    live = state_of(engine)
    engine.close()
    again = open_engine(tmp_path / "s", fitted("felrec-s"))
    assert state_of(again) == live
    assert not again.health().rebuilding
    again.close()
    answers = {name: rows[: len(rows)] for name, rows in contents_of(tmp_path / "s").state.items()}
    replayed(tmp_path / "s")
    for name, rows in contents_of(tmp_path / "replay of s").state.items():
        assert (answers[name][: len(rows)] == rows).all()


def test_posts_during_a_rebuild_are_in_both_states(tmp_path: Path) -> None:
    engine = filled(tmp_path / "s")
    erased(engine)
    while steps(engine, 1):
        if engine._state.journal < 500:
            post(engine, made_up(3, start=2e9, seed=engine._state.journal))
            post(engine, made_up(300, start=2e9, seed=engine._state.journal))  # in several blocks
    live = state_after_more(engine)
    engine.close()
    assert replayed_offline(tmp_path / "s", fitted("felrec-s")) == live
    again = open_engine(tmp_path / "s", fitted("felrec-s"))
    assert state_of(again) == live
    again.close()


@pytest.mark.parametrize("done", [2, 14, 17, 20])  # while it catches up, and while it writes
def test_an_erasure_during_a_rebuild_makes_it_begin_again(done: int, tmp_path: Path) -> None:
    engine = filled(tmp_path / "s")
    engine.erase_user("user 3").result()
    steps(engine, done)
    engine.erase_user("user 11").result()
    assert engine.health().rebuilding
    steps(engine)
    live = state_after_more(engine)
    engine.close()
    assert replayed_offline(tmp_path / "s", fitted("felrec-s")) == live


@pytest.mark.parametrize("done", [0, 5, 12, 13, 14, 17, 20])
def test_a_kill_during_a_rebuild_costs_time_only(done: int, tmp_path: Path) -> None:
    engine = filled(tmp_path / "s")
    erased(engine)
    steps(engine, done)
    killed = killed_copy(tmp_path / "s", tmp_path / "killed")
    engine.close()
    again = open_engine(killed, fitted("felrec-s"))
    steps(again)
    live = state_of(again)
    assert not again.health().rebuilding
    again.close()
    assert not contents_of(killed).notes[rebuilding.REBUILD]
    replayed(killed)
    kept = contents_of(killed).state
    for name, rows in contents_of(killed.with_name("replay of s")).state.items():
        assert (kept[name][: len(rows)] == rows).all(), name
    third = open_engine(killed, fitted("felrec-s"))
    assert state_of(third) == live
    third.close()


def test_a_full_disk_delays_a_rebuild(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = filled(tmp_path / "s")
    engine.erase_user("user 3").result()
    steps(engine, 12)
    store, saves = engine._store, iter(range(100))

    def full(*_: object) -> None:
        next(saves)
        raise StoreFull("no space left; free some space, then write again")

    with monkeypatch.context() as patch:
        patch.setattr(store, "save", full)
        with pytest.raises(StoreFull):
            steps(engine)
    steps(engine)
    live = state_of(engine)
    engine.close()
    again = open_engine(tmp_path / "s", fitted("felrec-s"))
    assert state_of(again) == live
    again.close()
    assert next(saves) > 0


def test_with_a_base_the_journal_is_applied_to_it_again(tmp_path: Path) -> None:
    engine = filled(tmp_path / "s", known=BASE)
    engine.erase_user("user 3").result()
    steps(engine)
    live = state_after_more(engine)
    engine.close()
    assert replayed_offline(tmp_path / "s", fitted("felrec-s", known=BASE)) == live


def test_a_base_with_an_erased_user_cannot_be_rebuilt(tmp_path: Path) -> None:
    """Its state has them, and the store does not have its events."""
    engine = filled(tmp_path / "s", known=BASE)
    engine.erase_user("user 3").result()
    assert engine.health().rebuilding
    engine.erase_user("4").result()
    assert not engine.health().rebuilding
    engine.close()
    again = open_engine(tmp_path / "s", fitted("felrec-s", known=BASE))
    assert not again.health().rebuilding
    assert not again._state.recommender.state()["user_count"][4]
    again.close()


def test_it_begins_by_itself_after_the_last_erasure(tmp_path: Path) -> None:
    filled(tmp_path / "s").close()
    engine = open_engine(tmp_path / "s", fitted("felrec-s"), Limits(rebuild_after=0.0))
    erased(engine)
    deadline = time.monotonic() + 60
    while engine.health().rebuilding and time.monotonic() < deadline:
        time.sleep(0.01)
    live = state_after_more(engine)
    engine.close()
    assert replayed_offline(tmp_path / "s", fitted("felrec-s")) == live
