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
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest
from members import QUICK, follows, led_by_nobody, members, open_member, role, state, wait_until

from felrec import runs
from felrec.data.events import EventColumns
from felrec.errors import FelrecError, StoreError, StoreMoved
from felrec.service.engine.cluster.commands import Move, Post, to_inbox
from felrec.service.engine.cluster.member import Member
from felrec.service.engine.engine import Engine
from felrec.service.engine.moving import Moved, moved_to
from felrec.service.engine.types import Attributes, IdempotencyKey
from felrec.service.maintenance import switching
from felrec.service.maintenance.keeping_up import KeepingUp, begin_to_follow
from felrec.service.maintenance.replaying import replay_store
from felrec.service.maintenance.rewriting import store_at
from felrec.service.maintenance.switching import switch_store
from felrec.store.location import StoreLocation
from felrec.store.protocol import MOVED, Batch, Contents
from felrec.store.sql_store import SqlStore
from places import Place
from postgresql import PASSWORD, USER
from stores import digest, made_up, post, submit

RUN = Path("pretrained")
ROOT = Path(__file__).resolve().parents[3]
PATIENT = replace(QUICK, answer_seconds=60.0)


KINDS = "files", "namespaces"
_numbers = count()


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """Where the old and the new store are."""
    kind: str = request.param
    return kind


@pytest.fixture
def both(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[StoreLocation, StoreLocation]:
    """The old and the new store."""
    file = StoreLocation.of(tmp_path / "old.sqlite"), StoreLocation.of(tmp_path / "new.sqlite")
    if kind == "files":
        return file
    server, number = request.getfixturevalue("postgres"), next(_numbers)
    old, new = (StoreLocation.of(server.address(), f"switch-{end}-{number}") for end in ("old", "new"))
    if kind == "databases":
        server.run("createdb", "-h", str(server.folder), "-p", str(server.port), "-U", USER, f"other{number}")
        new = StoreLocation.of(server.address(f"other{number}"), "new")
    if kind == "a file and a namespace":  # whose password no process can have from the old store
        monkeypatch.setenv("PGPASSWORD", PASSWORD)
        old = file[0]
    return old, new


@pytest.fixture
def old(both: tuple[StoreLocation, StoreLocation]) -> StoreLocation:
    return both[0]


@pytest.fixture
def new(both: tuple[StoreLocation, StoreLocation]) -> StoreLocation:
    return both[1]


def place_of(location: StoreLocation) -> Place:
    return Place(location.address, location.namespace)


def contents_of(location: StoreLocation) -> Contents:
    with location.open("read") as store:
        return store.load()


def replay_into(new: StoreLocation, old: StoreLocation) -> None:
    contents = contents_of(old)
    contents.inbox.clear()
    with store_at(new.address, new.namespace) as filled:
        replay_store(contents, runs.load(RUN), filled, None)
        begin_to_follow(filled, contents, old.name)


@contextmanager
def opened(old: StoreLocation, new: StoreLocation) -> Iterator[KeepingUp]:
    with old.open("write", shared=True) as one, new.open("write") as other:
        keeping = KeepingUp(one, other, runs.load(RUN))
        try:
            yield keeping
        finally:
            keeping.close()


@contextmanager
def followed(old: StoreLocation, new: StoreLocation) -> Iterator[threading.Thread]:
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


def goes_on_with(member: Member, new: StoreLocation) -> bool:
    return member._store.name == new.name


def events_of(location: StoreLocation) -> list[tuple[str | None, str | None]]:
    contents = contents_of(location)
    rows = zip(contents.events.users.tolist(), contents.events.items.tolist(), strict=True)
    return [(contents.users[user], contents.items[item]) for user, item in rows]


def replayed(location: StoreLocation) -> str:
    """The state that the new weights reach with `observe` alone, given the journal of a store."""
    contents = contents_of(location)
    model, clock = runs.load(RUN).recommender, contents.clock
    model.reset()
    for events in contents.event_blocks:
        model.observe(events.not_before(clock))
        clock = max(clock, float(events.times.max()))
    return digest(model)


@pytest.mark.parametrize("kind", [*KINDS, "databases", "a file and a namespace"], indirect=True)
def test_processes_go_on_with_other_weights_while_events_arrive(old: StoreLocation, new: StoreLocation) -> None:
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


def test_the_new_store_catches_up_with_all_that_was_missed_and_with_erasures(
    old: StoreLocation, new: StoreLocation
) -> None:
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
        there, here = contents_of(old), contents_of(new)
        assert (here.users, here.items, here.attributes) == (there.users, there.items, there.attributes)
        with followed(old, new):
            switch_store(old, new, RUN)
        wait_until(lambda: goes_on_with(writer, new))
        assert post(writer, [("gone", "rye")]).accepted == 1
        assert [entry.id for entry in writer.user("gone").history] == ["rye", "oat"]


def test_what_is_left_in_the_inbox_and_receipts_come_along(old: StoreLocation, new: StoreLocation) -> None:
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
    with old.open("write", shared=True) as left, pytest.raises(StoreMoved, match="has taken the place"):
        left.append(*to_inbox(Post(given)))
    with pytest.raises(StoreMoved, match=f"was left for {re.escape(new.name)}; open that one, with pretrained"):
        Engine.open(old.open(), runs.load(RUN))


def test_a_kill_before_the_end_loses_no_command(
    old: StoreLocation, new: StoreLocation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old store has moved, and commands are in its inbox: each is carried once, however often it is tried."""
    with members(place_of(old), 1) as (writer,):
        post(writer, made_up(50))
        replay_into(new, old)
        with followed(old, new):
            pass
    moved = Moved.to(new, str(RUN)).note()
    with old.open("write", shared=True) as left:
        for number in range(4):
            left.append(*to_inbox(Post(EventColumns.of(["ada"], [f"left {number}"], [1e9]))))
        wait_until(lambda: left.lead("a writer", 5.0))
        contents = left.load()
        left.commit(Batch(len(contents.users), len(contents.items), notes={MOVED: moved}))
    append, carried = SqlStore.append, list[str]()

    def end_at_the_third(store: SqlStore, kind: str, *rest: Any) -> int:
        carried.append(kind)
        if len(carried) == 3:
            raise StoreError("killed")
        return append(store, kind, *rest)

    with opened(old, new) as keeping, monkeypatch.context() as patch:
        patch.setattr(SqlStore, "append", end_at_the_third)
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


def test_a_process_that_cannot_open_the_new_store_says_so_and_goes_on_answering(
    old: StoreLocation, new: StoreLocation
) -> None:
    with members(place_of(old), 1, replace(QUICK, behind_seconds=0.5)) as (writer,):
        post(writer, made_up(100))
        with old.open("write", shared=True) as store:
            store.append(*to_inbox(Move(Moved.to(new, str(RUN)))))
        wait_until(lambda: "cannot go on with" in (writer.health().unready or ""))
        assert writer.recommend("user 3", 5).items


def test_a_switch_is_refused_unless_the_new_store_follows_and_is_near(
    old: StoreLocation, new: StoreLocation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = StoreLocation.of(tmp_path / "other.sqlite")
    with members(place_of(old), 1) as (writer,), members(place_of(other), 1) as (stranger,):
        post(writer, made_up(50))
        post(stranger, made_up(50, seed=1))
        replay_into(new, other)
        with pytest.raises(StoreError, match=f"follows {re.escape(other.name)}, not {re.escape(old.name)}"):
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


def test_a_store_that_was_served_meanwhile_does_not_follow_any_more(old: StoreLocation, new: StoreLocation) -> None:
    with members(place_of(old), 1) as (writer,):
        post(writer, made_up(50))
        replay_into(new, old)
        with closing(Engine.open(new.open(), runs.load(RUN))) as engine:
            post(engine, [("ada", "tea")])
        with pytest.raises(StoreError, match="events of its own"), opened(old, new):
            pass


@pytest.mark.slow
def test_services_are_moved_by_the_commands_under_load(old: StoreLocation, new: StoreLocation, tmp_path: Path) -> None:
    """Two processes serve and answer posts; every one that was acknowledged counts once."""
    with services(old, tmp_path) as addresses, posting(addresses) as acknowledged:
        wait_until(lambda: len(acknowledged) > 10, 60)
        with started(tmp_path, *follow_command(old, new)) as following:
            assert "events replayed" in line_of(following)
            assert "changes behind" in line_of(following)
            with started(tmp_path, *switch_command(old, new)) as switching:
                assert "every process goes on with" in line_of(switching)
                assert switching.wait(60) == 0
            assert "has taken the place of" in line_of(following)
            assert following.wait(60) == 0
        before = len(acknowledged)
        wait_until(lambda: len(acknowledged) > before + 20, 60)
    counted = Counter(events_of(new))
    assert [counted[one] for one in acknowledged] == [1] * len(acknowledged)
    assert 0 < len(events_of(old)) < len(acknowledged)


def test_a_switch_that_is_killed_leaves_the_old_store_or_the_new_one(
    old: StoreLocation, new: StoreLocation, tmp_path: Path
) -> None:
    """It is killed while nobody writes, so that its command is in the inbox: the next writer does it."""
    with members(place_of(old), 1) as (writer,):
        post(writer, made_up(50))
        replay_into(new, old)
    with followed(old, new) as following:
        with led_by_nobody(place_of(old)) as store:
            with started(tmp_path, *switch_command(old, new)) as switching:
                wait_until(lambda: store.standing().inbox == 1, 60)
                switching.kill()
            assert moved_to(store.notes()) is None
        member = open_member(place_of(old))
        try:
            assert post(member, [("ada", "tea")]).accepted == 1
            wait_until(lambda: goes_on_with(member, new), 60)
            following.join(60)
            assert not following.is_alive()
            assert post(member, [("ada", "jam")]).accepted == 1
        finally:
            member.close()
    assert [item for _, item in events_of(new)[50:]] == ["tea", "jam"]


def follow_command(old: StoreLocation, new: StoreLocation) -> list[str]:
    namespaces = ["--namespace", str(old.namespace), "--out-namespace", str(new.namespace)] if old.namespace else []
    return ["replay", old.address, str(RUN), "--out", new.address, "--follow", *namespaces]


def switch_command(old: StoreLocation, new: StoreLocation) -> list[str]:
    namespaces = ["--namespace", str(old.namespace), "--new-namespace", str(new.namespace)] if old.namespace else []
    return ["switch", old.address, new.address, str(RUN), *namespaces]


@contextmanager
def services(old: StoreLocation, folder: Path) -> Iterator[list[str]]:
    """The addresses of two services that share a store."""
    given = ["--store", old.address, *(["--namespace", old.namespace] if old.namespace else ["--shared"])]
    command = "serve", str(RUN), "--port", "0", "--lease", "1", *given
    with started(folder, *command) as one, started(folder, *command) as other:
        found = [re.search(r"http://\S+", line_of(service)) for service in (one, other)]
        yield [address[0] for address in found if address]
        for service in (one, other):
            service.send_signal(signal.SIGTERM)
            assert service.wait(60) == 0


@contextmanager
def posting(addresses: list[str]) -> Iterator[list[tuple[str, str]]]:
    """Posts to each service all the time; the events that were acknowledged. One that was not is sent again."""
    acknowledged, end, errors = list[tuple[str, str]](), threading.Event(), list[BaseException]()

    def keep_posting(address: str, name: str) -> None:
        number = 0
        with httpx.Client(base_url=address, timeout=60, trust_env=False) as client:
            while not end.is_set():
                event = f"{name} {number % 7}", f"item {name} {number}"
                body, key = {"user": event[0], "item": event[1]}, {"Idempotency-Key": event[1]}
                answer = client.post("/v1/interactions", json=[body], headers=key)
                if answer.status_code == 200:
                    acknowledged.append(event)
                    number += 1
                else:
                    assert answer.status_code == 503, answer.text

    def noticing(address: str, name: str) -> None:
        try:
            keep_posting(address, name)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=noticing, args=given) for given in zip(addresses, ("a", "b"), strict=True)]
    for thread in threads:
        thread.start()
    try:
        yield acknowledged
    finally:
        end.set()
        for thread in threads:
            thread.join()
    assert not errors


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
