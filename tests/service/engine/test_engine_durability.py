"""Nothing is lost and nothing is shown too early: restarts, replays, slow and full disks."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path

import apsw
import pytest
import torch

from disks import killed_copy
from felrec.data.events import Events, RowChange
from felrec.data.synthetic import synthetic_log
from felrec.errors import ConfigError, KeyConflict, Stopped, StoreBusy, StoreFull
from felrec.fitted import FittedModel
from felrec.service.engine.engine import Engine
from felrec.service.engine.limits import Limits
from felrec.service.engine.serving_state import Block
from felrec.service.engine.types import Attributes, IdempotencyKey
from felrec.service.maintenance.importing import import_log
from felrec.store.protocol import Batch
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
    submit,
)

MODELS = [
    "felrec-s",
    "felrec-q",
    "felrec-p",
    "popularity",
    "decayed-popularity",
    "repeat",
]  # the last is replayed at the start


def answers(engine: Engine) -> list[object]:
    users = [f"user {n}" for n in range(20)] + ["3", "7", "a stranger"]
    return [engine.recommend(user, 12, exclude_seen=exclude) for user in users for exclude in (True, False)]


def busy_day(engine: Engine) -> None:
    """Single events, small posts, late ones, and one that is cut into blocks."""
    for n in range(10):
        post(engine, made_up(1, start=1e9 + n, seed=n))
    waiting = [submit(engine, made_up(30, start=1e9 - 100 * n, seed=n)) for n in range(12)]
    for one in waiting:
        one.result()
    post(engine, made_up(700, start=1.1e9, users=40, items=60, seed=99))
    post(engine, [("user 1", "the last"), ("user 2", "the last")])


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("known", [NOTHING, BASE], ids=["empty", "base"])
def test_a_restart_and_an_offline_replay_agree_bit_for_bit(name: str, known: Events, tmp_path: Path) -> None:
    def model() -> FittedModel:
        return fitted(name, known)

    engine = open_engine(tmp_path / "s", model())
    busy_day(engine)
    before, live = answers(engine), state_of(engine)
    engine.close()
    assert replayed_offline(tmp_path / "s", model()) == live
    again = open_engine(tmp_path / "s", model())
    assert state_of(again) == live
    assert answers(again) == before
    post(again, made_up(5, start=1.2e9))
    live = state_of(again)
    again.close()
    assert replayed_offline(tmp_path / "s", model()) == live


@pytest.mark.parametrize("name", ["felrec-s", "felrec-q"])
def test_a_store_opens_again_whatever_items_never_met(name: str, tmp_path: Path) -> None:
    """An item that is nobody's second event has met no other one."""
    engine = open_engine(tmp_path / "s", fitted(name, NOTHING))
    post(engine, [("a", "first of a"), ("b", "first of b"), ("b", "second of b")])
    post(engine, [("c", "first of c")])
    post(engine, [("d", "first of d"), ("d", "second of d")])
    before, live = answers(engine), state_of(engine)
    engine.close()
    again = open_engine(tmp_path / "s", fitted(name, NOTHING))
    assert state_of(again) == live
    assert answers(again) == before
    again.close()
    assert replayed_offline(tmp_path / "s", fitted(name, NOTHING)) == live


def test_a_replay_at_the_start_does_not_depend_on_the_number_of_threads(tmp_path: Path) -> None:
    """JODIE learns from each block; with a width of 5 its gradients are summed otherwise by two threads than by one."""
    known = synthetic_log(2_000, n_users=60, n_items=200, seed=1).log.events
    before, states = torch.get_num_threads(), set[str]()
    try:
        for threads in (2, 1, 3):  # written with two, restarted with one and with three
            torch.set_num_threads(threads)
            engine = open_engine(tmp_path / "s", fitted_alone("jodie", known))
            if not states:
                post(engine, made_up(2_000, users=60, items=200))
            states.add(state_of(engine))
            engine.close()
    finally:
        torch.set_num_threads(before)
    assert len(states) == 1


def fitted_alone(name: str, known: Events) -> FittedModel:
    """A model of width 5 that was fitted by one thread, as it would come from a file."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    model = fitted(name, known, width=5)
    torch.set_num_threads(threads)
    return model


def test_a_model_that_knows_only_its_own_items_cannot_begin_empty(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot start empty"):
        open_engine(tmp_path / "s", fitted("bpr-mf"))


def test_attributes_and_histories_survive_a_restart(tmp_path: Path) -> None:
    engine = open_engine(tmp_path / "s", fitted(known=BASE))
    post(engine, made_up(50))
    engine.put_item("item 1", Attributes("One", ("a", "b"), available=False)).result()
    engine.put_item("never bought", Attributes("None")).result()
    engine.delete_item("item 2").result()
    before = engine.user("user 3"), engine.user("3"), engine.item("item 1"), engine.item("never bought")
    assert before[1].history[0].timestamp == 60 * 183
    shown = answers(engine)
    engine.close()
    again = open_engine(tmp_path / "s", fitted(known=BASE))
    assert (again.user("user 3"), again.user("3"), again.item("item 1"), again.item("never bought")) == before
    assert answers(again) == shown
    again.close()


def test_events_that_wait_together_are_made_durable_together(tmp_path: Path) -> None:
    engine = open_engine(tmp_path / "s", limits=Limits(block=100))
    lock = write_lock(tmp_path / "s")
    waiting = [submit(engine, made_up(30, seed=n)) for n in range(9)]  # the first is taken alone, or with others
    lock.close()
    assert [one.result().events for one in waiting] == [30 * (n + 1) for n in range(9)]
    assert engine.health().commits <= 2
    live = state_of(engine)
    engine.close()
    sizes = [len(block) for block in contents_of(tmp_path / "s").event_blocks]
    assert sum(sizes) == 270
    assert max(sizes) == 100
    assert len(sizes) <= 5
    assert replayed_offline(tmp_path / "s") == live


def test_a_post_is_acknowledged_once_its_own_block_is_visible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Although others are made durable with it, and follow later."""
    engine = open_engine(tmp_path / "s", limits=Limits(block=10))
    lock, seen, apply = write_lock(tmp_path / "s"), list[int](), engine._state.apply_change
    posts = [submit(engine, [("ada", "first")])]
    while engine._ingest._queue:  # until the writer has begun with it
        time.sleep(0.01)
    posts += [submit(engine, made_up(10, seed=n)) for n in range(3)]

    def counted(block: Block, change: RowChange | None) -> None:
        seen.append(sum(post.done() for post in posts))
        apply(block, change)

    monkeypatch.setattr(engine._state, "apply_change", counted)
    lock.close()
    assert posts[-1].result().events == 31
    assert seen == [0, 1, 2, 3]
    assert engine.health().commits == 2
    engine.close()


def write_lock(path: Path) -> apsw.Connection:
    """Somebody else who is writing to the file, until closed."""
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")
    return other


def test_reads_do_not_wait_for_a_write(tmp_path: Path) -> None:
    engine = open_engine(tmp_path / "s")
    post(engine, made_up(300))
    lock = write_lock(tmp_path / "s")
    future = submit(engine, [("user 1", "not yet")])
    time.sleep(0.1)  # the writer has begun
    assert "not yet" not in [item.id for item in engine.recommend("user 2", 1_000).items]
    assert engine.user("user 1").events
    assert engine.health().queue_depth == 1
    assert not future.done()
    lock.close()
    future.result()
    assert "not yet" in [item.id for item in engine.recommend("user 2", 1_000).items]
    engine.close()


def test_the_same_key_in_flight_is_taken_in_once(tmp_path: Path) -> None:
    engine = open_engine(tmp_path / "s")
    lock = write_lock(tmp_path / "s")
    both = [submit(engine, made_up(10), IdempotencyKey("k", b"b")) for _ in range(2)]
    assert both[0] is both[1]
    lock.close()
    assert both[0].result().events == 10
    engine.close()


def test_many_threads_read_and_write(tmp_path: Path) -> None:
    engine = open_engine(tmp_path / "s")
    post(engine, made_up(50))
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            for n in range(12):
                post(engine, made_up(5, start=1e9 + 1_000 * n, seed=100 * seed + n))
                assert engine.recommend(f"user {n}", 5).items
                engine.similar_items("item 1", 3)
                engine.health()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert engine.health().events == 50 + 4 * 12 * 5
    live = state_of(engine)
    engine.close()
    assert replayed_offline(tmp_path / "s") == live


def test_a_full_disk_stops_writes_and_not_reads(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "s")
    engine = Engine.open(store, fitted(), empty=True)
    post(engine, made_up(100))
    shown, live = answers(engine), state_of(engine)
    store.limit(store.size() // 2)
    with pytest.raises(StoreFull, match="no space left"):
        post(engine, made_up(2_000, users=900, items=900, seed=5))
    with pytest.raises(StoreFull):
        submit(engine, made_up(256, users=900, items=900, seed=6), IdempotencyKey("k", b"b")).result()
    assert not engine.health().durable
    assert "no space left" in str(engine.health().problem)
    assert (answers(engine), state_of(engine)) == (shown, live)
    store.limit(None)
    assert submit(engine, made_up(256, users=900, items=900, seed=6), IdempotencyKey("k", b"b")).result().events == 356
    assert engine.health().durable
    live = state_of(engine)
    engine.close()
    assert replayed_offline(tmp_path / "s") == live


def test_what_is_journalled_is_applied_even_if_the_state_does_not_fit(tmp_path: Path) -> None:
    """There is room for the events of a post and not for the rows that they change: the next start completes it."""
    store = SqliteStore(tmp_path / "s")
    engine = Engine.open(store, fitted(), empty=True)
    post(engine, made_up(600, users=500, items=500, seed=5))
    store.limit(store.size() // 2)
    with pytest.raises(StoreFull):
        save(engine)
    assert engine.health().events == 600
    live, shown = state_of(engine), answers(engine)
    engine.close()  # tries again, in vain
    assert contents_of(tmp_path / "s").applied == 0
    again = open_engine(tmp_path / "s")
    assert (state_of(again), answers(again)) == (live, shown)
    again.close()
    assert contents_of(tmp_path / "s").applied == 3
    assert replayed_offline(tmp_path / "s") == live


def test_the_state_that_did_not_fit_is_saved_when_there_is_room(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "s")
    engine = Engine.open(store, fitted(), empty=True)
    post(engine, made_up(600, users=500, items=500, seed=5))
    store.limit(store.size() // 2)
    with pytest.raises(StoreFull):
        save(engine)
    store.limit(None)
    post(engine, made_up(3))
    live = state_of(engine)
    engine.close()
    assert contents_of(tmp_path / "s").applied == 4
    assert replayed_offline(tmp_path / "s") == live


def test_an_import_that_failed_half_way_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that is busy for a moment fails one chunk; the next must not be noted as if that one were there."""
    log = synthetic_log(1_000, n_users=30, n_items=40, seed=5).log
    limits, commit, left = Limits(submission=100), SqliteStore.commit, 3

    def busy_once(store: SqliteStore, batch: Batch) -> None:
        nonlocal left
        left -= bool(batch.blocks)
        if left == 0 and batch.blocks:
            time.sleep(0.3)  # long enough for the next chunk to be ready
            raise StoreBusy("somebody else is writing")
        commit(store, batch)

    monkeypatch.setattr(SqliteStore, "commit", busy_once)
    engine = open_engine(tmp_path / "s", limits=limits)
    with pytest.raises(StoreBusy):
        import_log(engine, log)
    engine.close()
    again = open_engine(tmp_path / "s", limits=limits)
    done = import_log(again, log)
    assert (done.before, done.events) == (200, 800)
    assert again.health().events == len(log)
    again.close()


def test_events_before_1970_are_imported_in_time_order(tmp_path: Path) -> None:
    recent = synthetic_log(300, n_users=20, n_items=30, seed=2).log
    log = replace(recent, events=replace(recent.events, times=recent.times - 4e9))
    assert log.times[-1] < 0
    engine = open_engine(tmp_path / "s")
    assert import_log(engine, log).late == 0
    assert engine.health().clock == log.times[-1]
    user = str(log.user_ids.ids(log.users[-1:])[0])
    engine.erase_user(user).result()
    clock = engine.health().clock
    engine.close()
    assert clock == log.times[log.users != log.users[-1]].max()
    again = open_engine(tmp_path / "s")
    assert again.health().clock == clock
    again.close()


def test_a_store_from_another_process_is_read_while_it_is_written(tmp_path: Path) -> None:
    engine = open_engine(tmp_path / "s")
    post(engine, made_up(300))
    with SqliteStore(tmp_path / "s", "read") as reader:
        reader.backup(tmp_path / "copy")
        assert reader.verify() == []
    live = state_of(engine)
    post(engine, made_up(10))
    engine.close()
    copy = open_engine(tmp_path / "copy")
    assert state_of(copy) == live
    copy.close()
    assert digest(fitted().recommender) != live


def test_an_engine_whose_memory_is_behind_says_that_it_is_not_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = open_engine(tmp_path / "s", fitted(known=BASE))
    assert engine.health().ready
    with monkeypatch.context() as patch:
        patch.setattr(engine._state, "apply_change", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            post(engine, made_up(3))
    assert not engine.health().ready
    for write in (lambda: post(engine, made_up(3)), lambda: engine.put_item("item 1", Attributes("One")).result()):
        with pytest.raises(Stopped, match="restart the engine"):
            write()
    engine.close()
    again = open_engine(tmp_path / "s", fitted(known=BASE))
    assert again.health().ready
    assert again.health().journal == 3
    again.close()


def test_what_is_applied_again_at_the_start_is_as_late_as_it_was(tmp_path: Path) -> None:
    """The state of a late post was not saved: the next start must know what came before it."""
    engine = open_engine(tmp_path / "s", fitted("felrec-s"))
    post(engine, made_up(20, start=1e9))
    save(engine)
    post(engine, made_up(600, start=1e8))
    killed, live = killed_copy(tmp_path / "s", tmp_path / "killed"), state_of(engine)
    engine.close()
    assert contents_of(killed).applied == 1
    again = open_engine(killed, fitted("felrec-s"))
    assert state_of(again) == live
    again.close()


def test_closed_at_once_it_fails_what_waits(tmp_path: Path) -> None:
    engine = open_engine(tmp_path / "s")
    lock = write_lock(tmp_path / "s")
    first = submit(engine, made_up(5))
    while engine._ingest._queue:  # until the writer has begun with it
        time.sleep(0.01)
    second = submit(engine, made_up(5))
    closing = threading.Thread(target=engine.close, args=(False,))
    closing.start()
    with pytest.raises(Stopped):
        second.result(timeout=5)
    lock.close()
    closing.join()
    assert first.result().accepted == 5


def test_posts_that_wait_together_are_late_one_for_the_other(tmp_path: Path) -> None:
    engine = open_engine(tmp_path / "s")
    lock = write_lock(tmp_path / "s")
    waiting = [submit(engine, [("ada", "x", moment)]) for moment in (1.0, 100.0, 50.0)]
    lock.close()
    assert [one.result().late for one in waiting] == [0, 0, 1]
    engine.close()


def test_another_body_with_the_key_of_a_post_on_its_way_is_a_conflict(tmp_path: Path) -> None:
    engine = open_engine(tmp_path / "s")
    lock = write_lock(tmp_path / "s")
    first = submit(engine, made_up(10), IdempotencyKey("k", b"b"))
    with pytest.raises(KeyConflict):
        submit(engine, made_up(10), IdempotencyKey("k", b"another"))
    lock.close()
    assert first.result().events == 10
    engine.close()


def test_events_of_the_same_moment_keep_their_order(tmp_path: Path) -> None:
    engine = open_engine(tmp_path / "s")
    post(engine, [("ada", "z", 5.0), ("ada", "a", 5.0), ("ada", "m", 4.0)])
    assert [event.id for event in engine.user("ada").history] == ["a", "z", "m"]
    engine.close()
