"""Another store, with other weights, takes the place of one that is in use: nothing is lost, nothing counts twice."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from members import QUICK, follows, members, open_member, role, state, wait_until

from felrec import runs
from felrec.data.events import EventColumns
from felrec.errors import FelrecError, StoreError, StoreMoved
from felrec.service.engine.cluster.commands import Move, Post, to_inbox
from felrec.service.engine.cluster.member import Member
from felrec.service.engine.engine import Engine
from felrec.service.engine.moving import Moved
from felrec.service.engine.types import Attributes, IdempotencyKey
from felrec.service.maintenance import switching
from felrec.service.maintenance.keeping_up import KeepingUp, begin_to_follow
from felrec.service.maintenance.replaying import replay_store
from felrec.service.maintenance.rewriting import new_store
from felrec.service.maintenance.switching import switch_store
from felrec.store.protocol import MOVED, Batch
from felrec.store.sqlite import SqliteStore
from places import Place
from stores import digest, made_up, open_engine, post, submit

RUN = Path("pretrained")
ROOT = Path(__file__).resolve().parents[3]
PATIENT = replace(QUICK, answer_seconds=60.0)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return tmp_path / "old.sqlite"


@pytest.fixture
def new(tmp_path: Path) -> Path:
    return tmp_path / "new.sqlite"


def place_of(path: Path) -> Place:
    return Place(str(path), None)


def replay_into(new: Path, old: Path) -> None:
    with SqliteStore(old, "read") as store:
        contents = store.load()
    contents.inbox.clear()
    with new_store(new) as filled:
        replay_store(contents, runs.load(RUN), filled, None)
        begin_to_follow(filled, contents, str(old))


@contextmanager
def opened(old: Path, new: Path) -> Iterator[KeepingUp]:
    with SqliteStore(old, "write", shared=True) as one, SqliteStore(new, "write") as other:
        keeping = KeepingUp(one, other, runs.load(RUN))
        try:
            yield keeping
        finally:
            keeping.close()


@contextmanager
def followed(old: Path, new: Path) -> Iterator[threading.Thread]:
    """A thread that follows until the switch, like `felrec replay --follow`."""
    end, begun, errors = threading.Event(), threading.Event(), list[BaseException]()

    def follow() -> None:
        try:
            with opened(old, new) as keeping:
                begun.set()
                while keeping.step(0.05) and not end.is_set():
                    pass
        except BaseException as error:
            errors.append(error)
        finally:
            begun.set()

    thread = threading.Thread(target=follow)
    thread.start()
    begun.wait()
    try:
        yield thread
    finally:
        end.set()
        thread.join()
    assert not errors


def goes_on_with(member: Member, new: Path) -> bool:
    return member._store.name == str(new)


def events_of(path: Path) -> list[tuple[str | None, str | None]]:
    with SqliteStore(path, "read") as store:
        contents = store.load()
    rows = zip(contents.events.users.tolist(), contents.events.items.tolist(), strict=True)
    return [(contents.users[user], contents.items[item]) for user, item in rows]


def replayed(path: Path) -> str:
    """The state that the new weights reach with `observe` alone, given the journal of a store."""
    with SqliteStore(path, "read") as store:
        contents = store.load()
    model, clock = runs.load(RUN).recommender, contents.clock
    model.reset()
    for events in contents.event_blocks:
        model.observe(events.not_before(clock))
        clock = max(clock, float(events.times.max()))
    return digest(model)


def test_processes_go_on_with_other_weights_while_events_arrive(old: Path, new: Path) -> None:
    acknowledged = list[tuple[str, str]]()
    with members(place_of(old), 2, PATIENT) as both:
        post(both[0], made_up(300))
        moved = threading.Event()

        def keep_posting(member: Member, name: str) -> None:
            number, after = 0, 0
            while after < 5:  # some posts after the switch too
                given = [(f"{name} {number % 7}", f"item {name} {number}")]
                submit(member, given).result(60)
                acknowledged.extend(given)
                number, after = number + 1, after + moved.is_set()

        posting = [
            threading.Thread(target=keep_posting, args=(member, name))
            for member, name in zip(both, ("ada", "bob"), strict=True)
        ]
        for thread in posting:
            thread.start()
        replay_into(new, old)
        with followed(old, new) as following:
            switch_store(old, new, RUN)
            following.join(60)
            assert not following.is_alive()
        wait_until(lambda: all(goes_on_with(member, new) for member in both), 60)
        moved.set()
        for thread in posting:
            thread.join(60)
            assert not thread.is_alive()
        wait_until(lambda: any(role(member) == "writer" for member in both))
        wait_until(lambda: follows(both[0], both[1]))
        online = state(both[0])
    assert len(acknowledged) > 20
    counted = Counter(events_of(new))
    assert [counted[one] for one in acknowledged] == [1] * len(acknowledged)
    assert counted.total() == 300 + len(acknowledged)
    assert online == replayed(new)


def test_the_new_store_catches_up_with_all_that_was_missed_and_with_erasures(old: Path, new: Path) -> None:
    with members(place_of(old), 1) as (writer,):
        post(writer, [("gone", "tea"), ("gone", "jam"), ("ada", "tea"), ("ada", "rye")])
        replay_into(new, old)
        post(writer, [("bob", "oat"), ("ada", "jam")])
        writer.put_item("tea", Attributes("Tea")).result(30)
        with opened(old, new) as keeping:  # what came while nobody followed
            writer.erase_user("gone").result(30)
            post(writer, [("gone", "oat"), ("ada", "fig")])  # the id comes back, as a new user
            writer.put_item("fig", Attributes("Fig")).result(30)
            writer.delete_item("oat").result(30)
            while keeping.behind:
                keeping.step(0.05)
        assert events_of(new) == events_of(old)
        with SqliteStore(old, "read") as one, SqliteStore(new, "read") as other:
            there, here = one.load(), other.load()
        assert (here.users, here.items, here.attributes) == (there.users, there.items, there.attributes)
        with followed(old, new):
            switch_store(old, new, RUN)
        wait_until(lambda: goes_on_with(writer, new))
        assert post(writer, [("gone", "rye")]).accepted == 1
        assert [entry.id for entry in writer.user("gone").history] == ["rye", "oat"]


def test_what_is_left_in_the_inbox_and_receipts_come_along(old: Path, new: Path) -> None:
    key = IdempotencyKey("once", b"body")
    given = EventColumns.of(["ada"], ["tea"], [1e9])
    with members(place_of(old), 1) as (writer,):
        post(writer, made_up(50))
        replay_into(new, old)
        receipt = writer.submit(given, key).result(30)
        with followed(old, new):
            switch_store(old, new, RUN)
        wait_until(lambda: goes_on_with(writer, new))
        assert writer.submit(given, key).result(30) == receipt
        assert writer._state.journal == 51
    with SqliteStore(old, "write", shared=True) as left, pytest.raises(StoreMoved, match=r"new\.sqlite"):
        left.append(*to_inbox(Post(given)))
    with pytest.raises(StoreMoved, match=r"new\.sqlite; open that one, with pretrained"):
        open_engine(old)


def test_a_kill_before_the_end_loses_no_command(old: Path, new: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old store has moved, and commands are in its inbox: each is carried once, however often it is tried."""
    with members(place_of(old), 1) as (writer,):
        post(writer, made_up(50))
        replay_into(new, old)
        with followed(old, new):
            pass
    moved = Moved(str(new), str(RUN)).note()
    with SqliteStore(old, "write", shared=True) as left:
        for number in range(4):
            left.append(*to_inbox(Post(EventColumns.of(["ada"], [f"left {number}"], [1e9]))))
        wait_until(lambda: left.lead("a writer", 5.0))
        contents = left.load()
        left.commit(Batch(len(contents.users), len(contents.items), notes={MOVED: moved}))
    append, carried = SqliteStore.append, list[str]()

    def end_at_the_third(store: SqliteStore, kind: str, *rest: Any) -> int:
        carried.append(kind)
        if len(carried) == 3:
            raise StoreError("killed")
        return append(store, kind, *rest)

    with opened(old, new) as keeping, monkeypatch.context() as patch:
        patch.setattr(SqliteStore, "append", end_at_the_third)
        with pytest.raises(StoreError, match="killed"):
            keeping.step(0.05)
    with opened(old, new) as keeping:
        assert not keeping.step(0.05)
    member = open_member(place_of(old))  # it is started as before, and finds its way
    try:
        wait_until(lambda: goes_on_with(member, new) and member._state.journal == 54)
    finally:
        member.close()
    assert [item for _, item in events_of(new)[50:]] == [f"left {number}" for number in range(4)]


def test_a_process_that_cannot_open_the_new_store_says_so_and_goes_on_answering(old: Path, new: Path) -> None:
    with members(place_of(old), 1, replace(QUICK, behind_seconds=0.5)) as (writer,):
        post(writer, made_up(100))
        with SqliteStore(old, "write", shared=True) as store:
            store.append(*to_inbox(Move(Moved(str(new), str(RUN)))))
        wait_until(lambda: "cannot go on with" in (writer.health().unready or ""))
        assert writer.recommend("user 3", 5).items


def test_a_switch_is_refused_unless_the_new_store_follows_and_is_near(
    old: Path, new: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other.sqlite"
    with members(place_of(old), 1) as (writer,), members(place_of(other), 1) as (stranger,):
        post(writer, made_up(50))
        post(stranger, made_up(50, seed=1))
        replay_into(new, other)
        with pytest.raises(StoreError, match=f"follows {other}, not {old}"):
            switch_store(old, new, RUN)
        with pytest.raises(StoreError, match="nobody keeps"):
            switch_store(other, new, RUN)
        with opened(other, new):
            for number in range(5):
                post(stranger, [("ada", f"item {number}")])
            monkeypatch.setattr(switching, "_BEHIND", 4)
            with pytest.raises(StoreError, match="5 changes behind"):
                switch_store(other, new, RUN)
            monkeypatch.setattr(switching, "_BEHIND", 5)
            with pytest.raises(FelrecError, match=str(tmp_path)):
                switch_store(other, new, tmp_path)
        assert post(writer, [("ada", "tea")]).accepted == 1
        with pytest.raises(StoreError, match="follows no store"):
            switch_store(other, old, RUN)


def test_a_store_that_was_served_meanwhile_does_not_follow_any_more(old: Path, new: Path) -> None:
    with members(place_of(old), 1) as (writer,):
        post(writer, made_up(50))
        replay_into(new, old)
        with closing(Engine.open(SqliteStore(new), runs.load(RUN))) as engine:
            post(engine, [("ada", "tea")])
        with pytest.raises(StoreError, match="events of its own"), opened(old, new):
            pass


@pytest.mark.slow
def test_a_service_of_two_processes_is_moved_by_the_commands(tmp_path: Path) -> None:
    with started(tmp_path, "serve", "--processes", "2", "--port", "0", "--lease", "1") as service:
        found = re.search(r"http://\S+", line_of(service))
        assert found is not None
        with httpx.Client(base_url=found[0], timeout=30, trust_env=False) as client:
            assert client.post("/v1/interactions", json=[{"user": "ada", "item": "tea"}]).status_code == 200
            files = "store.sqlite", "new.sqlite"
            with started(tmp_path, "replay", files[0], "pretrained", "--out", files[1], "--follow") as following:
                assert "1 events replayed" in line_of(following)
                assert "changes behind store.sqlite" in line_of(following)
                with started(tmp_path, "switch", *files, "pretrained") as switching:
                    assert "every process goes on with new.sqlite" in line_of(switching)
                    assert switching.wait(60) == 0
                assert "has taken the place of" in line_of(following)
                assert following.wait(60) == 0
            for _ in range(6):  # each connection may reach another process
                answer = httpx.post(f"{found[0]}/v1/interactions", json=[{"user": "ada", "item": "jam"}], timeout=30)
                assert answer.status_code == 200
            assert client.get("/v1/users/ada").json()["events"] == 7
        service.send_signal(signal.SIGTERM)
        assert service.wait(60) == 0
    assert len(events_of(tmp_path / files[1])) == 7
    assert len(events_of(tmp_path / files[0])) == 1


@contextmanager
def started(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A felrec command as a process of its own."""
    with subprocess.Popen(
        [sys.executable, "-c", "from felrec.cli import main; main()", *arguments],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1", "PYTHONPATH": str(ROOT / "src")},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()
