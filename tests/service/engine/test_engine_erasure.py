"""Erasing a user: nothing of them is left, and everything else is as if they had never come."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import apsw
import numpy as np
import pytest
import torch

from felrec.data.events import Events
from felrec.data.log import InteractionLog
from felrec.data.vocabulary import Vocabulary
from felrec.errors import ConfigError, NotFound
from felrec.fitted import FittedModel
from felrec.service.engine.engine import Engine
from felrec.service.engine.types import Attributes, IdempotencyKey
from felrec.service.maintenance.exporting import events_of
from felrec.service.maintenance.replaying import replay_store
from felrec.store import connecting
from felrec.store.protocol import Contents
from felrec.store.sqlite import SqliteStore
from stores import BASE, Given, contents_of, digest, fitted, made_up, open_engine, post, save, state_of, submit

WHO = "erika.mustermann@example.org"
MODELS = ["felrec-s", "felrec-q", "popularity", "decayed-popularity", "repeat"]


def day_with(erika: bool) -> list[list[Given]]:
    """Posts in which Erika takes part, or the same without her."""
    posts = [made_up(60, start=1e9 + 1_000 * n, seed=n) for n in range(6)]
    for n, events in enumerate(posts):
        if erika:
            events[10:10] = [(WHO, f"item {item}", 1e9 + 1_000 * n + 9) for item in (n, n, 29)]
            events.append((WHO, "her own draft", 1e9 + 1_000 * n + 900))
    return posts


def filled(path: Path, model: FittedModel, erika: bool) -> Engine:
    engine = open_engine(path, model)
    for events in day_with(erika):
        post(engine, events)
    return engine


def by_name(engine: Engine) -> dict[str, tuple[object, ...]]:
    """What is known of every user and item, whatever row they have."""
    health = engine.health()
    known: dict[str, tuple[object, ...]] = {"": (health.events, health.users, health.items, health.cold_items)}
    for user in engine.search_users("", 1_000):
        known[f"user {user.id}"] = (user.events, engine.user(user.id, 1_000).history)
    for item in engine.search_items("", 1_000):
        known[f"item {item.id}"] = (
            item.events,
            engine._state.index.of_item(engine._state.items.row(item.id)).size,
        )
    return known


def replayed(path: Path, out: Path, model: FittedModel, log: InteractionLog | None = None) -> tuple[str, Contents]:
    """The state of a replay, and the new store."""
    with SqliteStore(path, "read") as old, SqliteStore(out) as new:
        replay_store(old.load(), model, new, log)
    return digest(model.recommender), contents_of(out)


@pytest.mark.parametrize("name", MODELS)
def test_afterwards_it_is_as_if_they_had_never_come(name: str, tmp_path: Path) -> None:
    engine, never = filled(tmp_path / "s", fitted(name), True), filled(tmp_path / "never", fitted(name), False)
    erasure = engine.erase_user(WHO).result()
    assert (erasure.events, erasure.items_removed, erasure.cleaned) == (24, 1, True)
    assert by_name(engine) == by_name(never)
    with pytest.raises(NotFound):
        engine.user(WHO)
    assert not engine.recommend(WHO).known
    assert "her own draft" not in [item.id for item in engine.recommend("user 1", 1_000).items]
    live = state_of(engine)
    engine.close()
    again = open_engine(tmp_path / "s", fitted(name))
    assert state_of(again) == live
    assert by_name(again) == by_name(never)
    again.close()
    never.close()
    left, expected = contents_of(tmp_path / "s"), contents_of(tmp_path / "never")
    assert events_of(left).equals(events_of(expected))
    assert len(left.blocks) == len(expected.blocks)


@pytest.mark.parametrize("where", ["a save", "a page", "both"])
def test_nothing_of_them_is_left_in_the_files(where: str, tmp_path: Path) -> None:
    engine = filled(tmp_path / "s", fitted(), True)
    files = ("s", "s-wal", "s-shm", "s-lease")

    def found(words: bytes) -> bool:
        return any(words in (tmp_path / name).read_bytes() for name in files if (tmp_path / name).exists())

    save(engine)
    while where != "a save" and engine._ingest.run(lambda: engine._store.tidy(everything=True)).result():
        pass
    if where == "both":
        post(engine, [(WHO, "item 3")])
        save(engine)
    vector = engine.vectors("user", ids=[WHO]).values
    row = engine._state.users.row(WHO)
    raw = engine._state.recommender.state()["user_cache"][row, :-1].numpy().tobytes()  # the last cell is kept apart
    assert found(WHO.encode())
    assert found(b"her own draft")
    assert found(raw)
    assert vector.any()
    engine.erase_user(WHO).result()
    for piece in (b"erika", b"muster", b"mann@", b"example", b".org", b"her own", b"draft", raw, raw[-12:]):
        assert not found(piece), piece
    post(engine, made_up(300))
    engine.close()
    assert not found(WHO.encode())
    assert row not in contents_of(tmp_path / "s").events.users


def test_items_that_only_they_had_leave_nothing_behind(tmp_path: Path) -> None:
    """Neither in memory nor in a file: not the id, not the title, not the tags."""
    engine = filled(tmp_path / "s", fitted(), True)
    engine.put_item("her own draft", Attributes("Diary of Xanthippe", ("quixotic",))).result()
    engine.put_item("item 29", Attributes("Known to all", ("common",))).result()
    words = (b"her own draft", b"Xanthippe", b"xanthippe", b"quixotic")
    assert all(any(word in file.read_bytes() for file in tmp_path.glob("s*")) for word in words if word != b"xanthippe")
    engine.erase_user(WHO).result()
    assert engine.search_items("xan") == engine.search_items("her") == []
    assert [item.id for item in engine.search_items("known")] == ["item 29"]
    assert [*engine._state.attributes._tags._rows] == ["common"]
    with pytest.raises(NotFound):
        engine.item("her own draft")
    for word in words:
        assert not any(word in file.read_bytes() for file in tmp_path.glob("s*")), word
    engine.put_item("her own draft", Attributes("Another")).result()
    engine.close()
    again = open_engine(tmp_path / "s")
    assert again.item("her own draft").title == "Another"
    assert again.item("item 29").tags == ("common",)
    again.close()


def test_items_are_encoded_anew_from_those_who_are_left(tmp_path: Path) -> None:
    """The vector of an item is what the encoder makes of its history without the user, from the caches as they are."""
    known = Events.of([0, 1, 2, 0, 3], [0, 0, 0, 1, 1], np.arange(5))
    engine = open_engine(tmp_path / "s", fitted(known=known))
    post(engine, [("4", "0", 10.0), ("1", "0", 11.0), ("4", "2", 12.0)])
    before = engine._state.recommender.state()
    engine.erase_user("1").result()
    after = engine._state.recommender.state()
    assert after["item_ring"][0][:3].tolist() == [0, 2, 4]
    assert after["item_count"].tolist() == [3, 2, 1]
    assert not after["user_cache"][1].any()
    assert after["user_count"][1] == 0
    assert torch.equal(after["item_cache"][1:], before["item_cache"][1:])
    ring = before["item_ring"].clone()
    ring[0] = torch.tensor([0, 2, -1, -1, -1, -1])
    twin = fitted(known=known).recommender
    twin.load_state({**before, "item_ring": ring, "item_count": torch.tensor([2, 2, 1])})
    expected = twin.change(Events.of([4], [0], [20.0]))["item_cache"][1][0]  # type: ignore[attr-defined]
    torch.testing.assert_close(after["item_cache"][0], torch.from_numpy(expected))
    engine.close()


@pytest.mark.parametrize("name", ["felrec-s", "felrec-q"])
def test_a_user_of_the_base_is_erased_too(name: str, tmp_path: Path) -> None:
    engine = open_engine(tmp_path / "s", fitted(name, known=BASE))
    post(engine, [("3", "new", 1e9), ("4", "new", 1e9)])
    mine = int((BASE.users == 3).sum())
    assert engine.user("3").events == mine + 1
    erasure = engine.erase_user("3").result()
    assert erasure.events == mine + 1
    assert engine.health().events == len(BASE) + 1 - mine
    counts = np.bincount(BASE.items[BASE.users != 3], minlength=31)
    assert engine._state.recommender.state()["item_count"][:31].tolist() == counts.tolist()
    live = state_of(engine)
    engine.close()
    kept = contents_of(tmp_path / "s")
    assert kept.users[3] is None
    assert 3 not in kept.pairs["user"]
    again = open_engine(tmp_path / "s", fitted(name, known=BASE))
    assert state_of(again) == live
    assert again.item("new").events == 1
    again.close()


def test_a_replay_needs_the_log_of_the_base_and_leaves_out_who_was_erased(tmp_path: Path) -> None:
    log = InteractionLog(BASE, Vocabulary(range(20)), Vocabulary(range(31)))
    model = fitted(known=BASE)
    model.fingerprint = f"{log.fingerprint}:150:{len(log)}"
    engine = open_engine(tmp_path / "s", model)
    post(engine, made_up(40))
    engine.put_item("item 1", Attributes("One")).result()
    engine.erase_user("3").result()
    engine.close()
    with pytest.raises(ConfigError, match="with --log"):
        replayed(tmp_path / "s", tmp_path / "new", fitted())
    other = InteractionLog(BASE[:100], Vocabulary(range(20)), Vocabulary(range(31)))
    with pytest.raises(ConfigError, match="not the log"):
        replayed(tmp_path / "s", tmp_path / "new", fitted(), other)
    state, contents = replayed(tmp_path / "s", tmp_path / "new 2", fitted(), log)
    assert len(contents.events) == int((BASE.users != 3).sum()) + 40
    assert "3" not in contents.users
    assert contents.attributes["item 1"]["title"] == "One"
    engine = open_engine(tmp_path / "new 2", fitted())
    assert state_of(engine) == state
    engine.close()


def test_an_erasure_does_not_wait_for_readers_and_cleans_up_after_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "WAIT", 10**9)  # in milliseconds: if it waited, then for ever
    engine = filled(tmp_path / "s", fitted(), True)
    reader = apsw.Connection(str(tmp_path / "s"))
    reader.execute("BEGIN; SELECT count(*) FROM users").fetchall()
    with closing(reader):
        assert not engine.erase_user(WHO).result(timeout=60).cleaned
        post(engine, made_up(1))
        assert any(WHO.encode() in file.read_bytes() for file in tmp_path.glob("s*"))
    post(engine, made_up(1))
    assert not any(WHO.encode() in file.read_bytes() for file in tmp_path.glob("s*"))
    engine.close()


def test_a_disk_that_fails_after_the_erasure_does_not_undo_it(tmp_path: Path) -> None:
    engine = filled(tmp_path / "s", fitted(), True)
    store = engine._store
    assert isinstance(store, SqliteStore)
    file = store._database._file
    connection, file.connection = file.connection, Failing(file.connection)  # type: ignore[assignment]
    assert not engine.erase_user(WHO).result().cleaned
    file.connection = connection
    post(engine, [(WHO, "item 1")])  # she comes back
    engine.close()
    again = open_engine(tmp_path / "s")
    assert again.user(WHO).events == 1
    again.close()


class Failing:
    """A connection whose disk is full just when the log is to be moved."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def __getattr__(self, name: str) -> object:
        return getattr(self._connection, name)

    def execute(self, statement: str, *bindings: object) -> object:
        if "wal_checkpoint" in statement:
            raise apsw.FullError("no room")
        return self._connection.execute(statement, *bindings)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["felrec-s", "felrec-q"])
def test_after_a_restart_the_last_rows_may_be_of_the_erased(name: str, tmp_path: Path) -> None:
    engine = open_engine(tmp_path / "s", fitted(name))
    post(engine, made_up(60, users=6))
    post(engine, [(WHO, "her own draft")])
    engine.erase_user(WHO).result()
    engine.close()
    again = open_engine(tmp_path / "s", fitted(name))
    everybody = {user.id for user in again.search_users("", 1_000)}
    neighbours, others = {user.id for user in again.neighbours("user 0", 1_000)}, everybody - {"user 0"}
    assert neighbours == others if name == "felrec-q" else neighbours and neighbours <= others  # counted: not all
    assert {user.id for user in again.audience("item 1", 1_000)} <= everybody
    assert "her own draft" not in {item.id for item in again.similar_items("item 1", 1_000)}
    again.close()


def test_a_user_of_the_base_who_took_an_item_twice_is_erased_whole(tmp_path: Path) -> None:
    known = Events.of([0, 0, 1, 1], [0, 0, 0, 1], np.arange(4))
    engine = open_engine(tmp_path / "s", fitted(known=known))
    erasure = engine.erase_user("0").result()
    assert (erasure.events, erasure.items_rewritten, erasure.items_removed) == (2, 1, 0)
    assert (engine.item("0").events, engine.health().events) == (1, 2)
    assert engine._state.recommender.state()["item_count"].tolist() == [1, 1]
    engine.close()


def test_counts_and_clock_are_those_without_the_erased(tmp_path: Path) -> None:
    engine = open_engine(tmp_path / "s", fitted(known=BASE))
    post(engine, [("4", "5", 1e6), ("erika", "5", 2e6)])
    engine.erase_user("erika").result()
    health = engine.health()
    popular = engine._state.popularity.state()
    engine.close()
    again = open_engine(tmp_path / "s", fitted(known=BASE))
    assert (health.journal, health.clock) == (again.health().journal, again.health().clock) == (1, 1e6)
    assert all((popular[name] == column).all() for name, column in again._state.popularity.state().items())
    again.close()


def test_state_that_was_not_saved_yet_does_not_bring_the_erased_back(tmp_path: Path) -> None:
    engine = open_engine(tmp_path / "s")
    post(engine, made_up(600))
    assert contents_of(tmp_path / "s").applied == 0
    row = engine._state.users.row("user 3")
    engine.erase_user("user 3").result()
    post(engine, made_up(3, start=2e9, users=2))
    live = state_of(engine)
    engine.close()
    assert not contents_of(tmp_path / "s").state["user_cache"][row].any()
    again = open_engine(tmp_path / "s")
    assert state_of(again) == live
    again.close()


def test_a_replay_remembers_the_keys_of_posts(tmp_path: Path) -> None:
    engine = open_engine(tmp_path / "s")
    first = submit(engine, made_up(20), IdempotencyKey("k", b"body")).result()
    engine.close()
    replayed(tmp_path / "s", tmp_path / "new", fitted())
    again = open_engine(tmp_path / "new")
    assert submit(again, made_up(20), IdempotencyKey("k", b"body")).result() == first
    assert again.health().events == 20
    again.close()
