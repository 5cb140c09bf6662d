"""Files that are taken away, a full disk at the start, a kill within an erasure, a clock that jumps."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from disks import fill, killed_copy, small_disk
from felrec.errors import StoreFull, StoreLost
from felrec.service.engine.engine import Engine
from felrec.service.engine.types import Attributes, IdempotencyKey
from felrec.service.maintenance.replaying import replay_store
from felrec.store.sqlite import SqliteStore
from stores import contents_of, fitted, made_up, open_engine, post, replayed_offline, save, state_of

KEY = IdempotencyKey("a key", b"a body")


def test_an_engine_whose_file_is_removed_says_so_and_acknowledges_nothing(tmp_path: Path) -> None:
    with closing(open_engine(tmp_path / "s")) as engine:
        post(engine, made_up(50))
        assert engine.health().ready
        (tmp_path / "s").unlink()
        health = engine.health()
        assert (health.ready, health.durable) == (False, False)
        assert "s was removed" in str(health.problem)
        assert "put them back, then restart" in str(health.unready)
        for write in (
            lambda: post(engine, made_up(1)),
            lambda: engine.put_item("item 1", Attributes("One")).result(),
            lambda: engine.erase_user("user 1").result(),
        ):
            with pytest.raises(StoreLost, match="nothing more is stored"):
                write()
        assert engine.recommend("user 1").items
        assert engine.health().events == 50


@pytest.mark.parametrize("saved", [True, False], ids=["all saved", "the last post not saved"])
def test_an_engine_starts_on_a_full_disk_reads_and_recovers(saved: bool, tmp_path: Path) -> None:
    engine = open_engine(tmp_path / "s")
    post(engine, made_up(100), KEY)
    save(engine)
    post(engine, made_up(600, seed=2))
    if saved:
        save(engine)
    shown, live = engine.recommend("user 1", 20), state_of(engine)
    killed = killed_copy(tmp_path / "s", tmp_path / "killed")
    engine.close()
    with small_disk(tmp_path / "disk", "8m") as disk:
        for file in killed.parent.iterdir():
            (disk / file.name).write_bytes(file.read_bytes())
        filler = fill(disk)
        with closing(open_engine(disk / "s")) as engine:
            assert (engine.recommend("user 1", 20), state_of(engine)) == (shown, live)
            health = engine.health()
            assert (health.ready, health.durable, health.events) == (True, False, 700)
            assert "no space left" in str(health.problem)
            with pytest.raises(StoreFull):
                post(engine, made_up(1))
            assert post(engine, made_up(100), KEY).events == 100  # a repeated post needs no room
            filler.unlink()
            until = time.monotonic() + 60
            while not engine.health().durable:
                assert time.monotonic() < until
                try:
                    post(engine, [("new", "event", 3e9)])
                except StoreFull:
                    time.sleep(0.05)  # it tries again once a second
            assert engine.health().events == 701
            live = state_of(engine)
        assert replayed_offline(disk / "s") == live
        with closing(open_engine(disk / "s")) as engine:
            assert state_of(engine) == live


def test_what_a_killed_erasure_left_in_the_log_is_removed_by_the_next_start(tmp_path: Path) -> None:
    def found(folder: Path) -> bool:
        return any(b"erika" in file.read_bytes() for file in folder.iterdir())

    with closing(open_engine(tmp_path / "s")) as engine:
        post(engine, [*made_up(20), ("erika", "item 1", 2e9)])
        reader = apsw.Connection(str(tmp_path / "s"))  # as long as it reads, the log cannot be cleaned
        with closing(reader):
            reader.execute("BEGIN; SELECT count(*) FROM users").fetchall()
            assert not engine.erase_user("erika").result().cleaned
            killed = killed_copy(tmp_path / "s", tmp_path / "killed")
    assert found(killed.parent)
    with closing(open_engine(killed)) as again:
        assert again.known("user", ["erika", "user 1"]) == ["user 1"]
        assert not found(killed.parent)


@pytest.mark.parametrize("restart", [False, True], ids=["running", "restarted"])
def test_a_key_of_a_time_when_the_clock_was_behind_is_not_forgotten(
    restart: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = time.time
    engine = open_engine(tmp_path / "s")
    with monkeypatch.context() as patch:
        patch.setattr(time, "time", lambda: right() - 3 * 86_400)
        first = post(engine, made_up(3), KEY)
    if restart:
        engine.close()
        engine = open_engine(tmp_path / "s")
    post(engine, made_up(1, seed=9))  # a commit removes keys that have expired
    assert post(engine, made_up(3), KEY) == first
    assert engine.health().events == 4
    engine.close()


def test_the_time_by_which_keys_expire_goes_on_after_a_restart(tmp_path: Path) -> None:
    with closing(open_engine(tmp_path / "s")) as engine:
        post(engine, made_up(3), KEY)
        first = engine._store.seconds()
    with closing(open_engine(tmp_path / "s")) as engine:
        post(engine, made_up(3))
    after = contents_of(tmp_path / "s")
    assert after.seconds > 0
    assert after.answers[0].expires == pytest.approx(24 * 3_600 + first, abs=60)
    with SqliteStore(tmp_path / "s", "read") as store:
        assert store.seconds() >= after.seconds


def test_a_key_lives_as_long_in_a_replayed_store(tmp_path: Path) -> None:
    with closing(open_engine(tmp_path / "s")) as engine:
        post(engine, made_up(3), KEY)
    with SqliteStore(tmp_path / "s", "read") as old, SqliteStore(tmp_path / "new") as new:
        contents = old.load()
        contents.seconds += 1e6  # the old store has been open for days
        contents.answers = [answer._replace(expires=answer.expires + 1e6) for answer in contents.answers]
        replay_store(contents, fitted(), new, None)
        left = new.load().answers[0].expires - new.seconds()
    assert 23 * 3_600 < left <= 24 * 3_600
    engine = Engine.open(SqliteStore(tmp_path / "new"), fitted(), empty=True)
    assert post(engine, made_up(3), KEY).events == 3
    engine.close()
