"""Processes that share a store let go of silent users and items while they serve."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from members import QUICK, follows, members, open_member, replayed, role, state, wait_until

from felrec.errors import ConfigError, NotFound, StoreError, StoreMissing, StoreUnreachable
from felrec.service.engine.cluster.member import Member
from felrec.service.engine.engine import Engine
from felrec.service.engine.serving_state import ServingState
from felrec.service.engine.types import Attributes, IdempotencyKey
from felrec.service.maintenance.keeping_up import KeepingUp, begin_to_follow
from felrec.service.maintenance.replaying import replay_store
from felrec.store.postgres import PostgresStore
from felrec.store.postgres_schema import unfinished_namespace
from felrec.store.protocol import EMPTY_BASE, LET_GO
from felrec.store.reading import read_contents
from felrec.store.sqlite import SqliteStore
from places import Place
from postgresql import PostgresServer
from stores import BASE, Given, digest, fitted, fitted_to, made_up, old_and_new_log, post, save, submit

each_kind = pytest.mark.parametrize("place", ["sqlite", "postgresql"], indirect=True)
DAY = 86_400.0
FORGETTING = replace(QUICK, forget_after=400 * DAY, block=32, lease_seconds=10.0)  # the writer must stay that
LONG_AGO: list[Given] = [(f"old {n % 20}", f"old {n * 7 % 31}", 1e9 + n) for n in range(300)]
LATELY = made_up(400, start=1e9 + 500 * DAY, users=9, items=9, seed=2)


def engine_of(writer: Member) -> Engine:
    assert writer._term is not None
    return writer._term.engine


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


def let_go(writer: Member, between: Callable[[int], object] = lambda _: None, most: int = 200) -> None:
    engine = engine_of(writer)
    engine._ingest.run(pieces(engine, between, most)).result(timeout=60)


def catch_up(member: Member, writer: Member) -> None:
    wait_until(lambda: follows(member, writer))


def begin(writer: Member) -> None:
    post(writer, LONG_AGO)
    post(writer, LATELY)


@each_kind
def test_all_processes_have_the_state_of_a_replay_of_the_rest(place: Place) -> None:
    key, waiting = IdempotencyKey("monday", b"body"), list[Future[Any]]()
    with members(place, 3, FORGETTING) as (writer, *readers):
        begin(writer)
        writer.put_item("old 7", Attributes(title="Old")).result(30)
        first = submit(readers[0], [("user 1", "item 1", 1e9 + 501 * DAY)], key).result(30)

        def meanwhile(number: int) -> None:
            if number == 4:  # a silent user comes back, by way of the inbox
                waiting.append(submit(readers[1], [("old 3", "item 2", 1e9 + 502 * DAY), ("new", "new item")]))
                waiting.append(writer.put_item("item 1", Attributes(title="After")))

        let_go(writer, meanwhile)
        for one in waiting:
            one.result(30)
        for member in (writer, *readers):
            catch_up(member, writer)
            assert member._state.users.known == 11
            assert [entry.id for entry in member.user("old 3").history] == ["item 2"]
            assert member.item("item 1").title == "After"
            assert member.item("old 7").title == "Old"
            with pytest.raises(NotFound):
                member.user("old 4")
            assert submit(member, [("user 1", "item 1", 1e9 + 501 * DAY)], key).result(30) == first
        post(readers[0], made_up(50, start=1e9 + 503 * DAY, users=12, items=12, seed=3))
        for reader in readers:
            catch_up(reader, writer)
        last = state(writer)
    assert replayed(place) == last
    with place.alone("read") as store:
        assert store.verify() == []
        contents = store.load()
    assert len(contents.events) == 453
    assert not {name for name in (*contents.users, *contents.items) if name and name.startswith("old")} - {"old 3"}


@each_kind
def test_it_can_be_done_again_and_nothing_is_left_beside(place: Place, tmp_path: Path) -> None:
    with members(place, 1, FORGETTING) as (writer,):
        begin(writer)
        let_go(writer)
        beside = Place(place.address, unfinished_namespace(str(place.namespace))) if place.namespace else None
        if beside:
            with pytest.raises(StoreMissing):
                beside("read")
        assert list(tmp_path.glob(".*")) == []
        post(writer, made_up(400, start=1e9 + 1_000 * DAY, users=5, items=5, seed=3))
        post(writer, [("new", "new", 1e9 + 1_001 * DAY)])
        let_go(writer)
        assert writer._state.users.known == 6
        last = state(writer)
    assert replayed(place) == last


@each_kind
def test_a_store_that_cannot_be_reached_then_is_no_reason_to_end(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was built cannot be removed; the next attempt does that."""
    with members(place, 1, FORGETTING) as (writer,):
        begin(writer)
        let_go(writer, most=12)
        work = engine_of(writer)._letting_go
        assert work._successor is not None
        store = work._successor.store

        def unreachable() -> None:
            store.close()
            raise StoreUnreachable("the server cannot be reached")

        monkeypatch.setattr(store, "discard", unreachable)
        let_go(writer)
        assert writer._state.users.known == 9


@each_kind
def test_another_writer_goes_on_after_it(place: Place) -> None:
    with members(place, 2, FORGETTING) as (writer, reader):
        begin(writer)
        let_go(writer)
        wait_until(lambda: follows(reader, writer))
        writer.close()
        wait_until(lambda: role(reader) == "writer")
        post(reader, made_up(50, start=1e9 + 501 * DAY, users=9, items=9, seed=3))
        last = state(reader)
    assert replayed(place) == last


@each_kind
def test_the_next_writer_saves_what_was_never_saved(place: Place) -> None:
    """Blocks are counted anew after it: what was saved before then says nothing about the rows of now."""
    unsaved = replace(FORGETTING, save_seconds=math.inf, save_work=math.inf)
    with members(place, 2, unsaved) as (writer, reader):
        begin(writer)
        save(engine_of(writer))
        wait_until(lambda: reader._keeper.standing.applied > 20)
        let_go(writer)
        catch_up(reader, writer)
        post(writer, made_up(50, start=1e9 + 501 * DAY, users=9, items=9, seed=3))
        catch_up(reader, writer)
        for number in range(3):  # it looks what was saved between any two
            post(writer, [("user 1", f"item {number}", 1e9 + 502 * DAY)])
            catch_up(reader, writer)
        writer.close(drain=False)
        wait_until(lambda: role(reader) == "writer")
        post(reader, [("user 2", "item 1", 1e9 + 503 * DAY)])
        online = state(reader)
        reader.close()  # saves
    with place.alone("read") as store:
        contents = store.load()
    assert contents.applied == len(contents.blocks) - 1
    assert digest(ServingState(fitted("felrec-s"), contents).recommender) == online == replayed(place)


@each_kind
def test_a_writer_that_dies_meanwhile_leaves_everything_as_it_was(place: Place) -> None:
    with members(place, 2, FORGETTING) as (writer, reader):
        begin(writer)
        let_go(writer, most=12)  # some of the others are copied
        assert engine_of(writer)._letting_go._successor is not None
        writer._term._store.over = True  # type: ignore[union-attr]  # as if it had lost its lease
        wait_until(lambda: role(reader) == "writer" or role(writer) == "writer")
        post(reader, [("ada", "tea", 1e9 + 502 * DAY)])
        wait_until(lambda: reader._state.journal == 701)
        heir = reader if role(reader) == "writer" else writer
        let_go(heir)
        assert heir._state.users.known == 10
        for member in (writer, reader):
            catch_up(member, heir)
        last = state(heir)
    assert replayed(place) == last


@pytest.mark.parametrize("place", ["postgresql"], indirect=True)
def test_who_loads_the_store_is_waited_for(place: Place, postgres: PostgresServer) -> None:
    """A table cannot be replaced while somebody reads it; events that come meanwhile are not left out."""
    with members(place, 1, FORGETTING) as (writer,), psycopg.connect(postgres.socket_address) as loading:
        begin(writer)
        loading.execute(f'SELECT count(*) FROM "{place.namespace}".blocks')
        engine, waited = engine_of(writer), list[Future[Any]]()

        def meanwhile(_: int) -> None:
            if engine._letting_go._not_before and not waited:  # it was tried
                waited.append(submit(writer, [("ada", "tea", 1e9 + 502 * DAY)]))
                loading.commit()

        let_go(writer, meanwhile)
        assert waited[0].result(30).accepted == 1
        assert writer._state.users.known == 10
        last = state(writer)
    assert replayed(place) == last


@pytest.mark.parametrize("place", ["postgresql"], indirect=True)
def test_a_load_that_meets_other_tables_is_repeated(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with members(place, 1, FORGETTING) as (writer,), place("read") as reader:
        begin(writer)
        assert isinstance(reader, PostgresStore)
        value, times = reader._contents, list[int]()

        def late(report: Callable[[str], None]) -> Any:
            if not times:  # the tables are replaced between the first look at the store and its rows
                times.append(1)
                with reader._database.reading(large=True):
                    reader._database.connection.execute("SELECT name FROM meta").fetchall()
                    let_go(writer)
                    return read_contents(reader._database.connection, report)
            times.append(2)
            return value(report)

        monkeypatch.setattr(reader, "_contents", late)
        assert len(reader.load().events) == 400
        assert times == [1, 2]


@each_kind
def test_a_store_that_follows_it_has_to_begin_again(place: Place, tmp_path: Path) -> None:
    new = SqliteStore(tmp_path / "new")
    with members(place, 1, FORGETTING) as (writer,), new:
        begin(writer)
        with place("read", shared=False) as store:
            contents = store.load()
        replay_store(contents, fitted("felrec-s"), new, None)
        begin_to_follow(new, contents, store.name)
        with place("write") as old:
            keeping = KeepingUp(old, new, fitted("felrec-s"))
            let_go(writer)
            with pytest.raises(StoreError, match="has let go of silent users"):
                keeping.step(5.0)
            assert old.notes()[LET_GO] == "1"
            with pytest.raises(StoreError, match="start felrec replay --follow again"):
                KeepingUp(old, new, fitted("felrec-s"))


@each_kind
def test_processes_whose_store_started_with_a_run_need_its_log(place: Place) -> None:
    log = old_and_new_log()
    both = [Member.open(place(), fitted_to(log), limits=FORGETTING, log=log) for _ in range(2)]
    try:
        wait_until(lambda: any(role(one) == "writer" for one in both))
        writer, reader = sorted(both, key=role, reverse=True)
        post(reader, LATELY)
        let_go(writer)
        catch_up(reader, writer)
        for member in both:
            assert (member._state.base, member._state.base_events) == (EMPTY_BASE, None)
            assert member._state.users.known == 7 + 9
            assert member.health().events == 100 + 400
        last = state(writer)
    finally:
        for member in both:
            member.close()
    assert replayed(place) == last


@each_kind
def test_it_must_be_possible(place: Place) -> None:
    with pytest.raises(ConfigError, match="training log of that run with --log"):
        Member.open(place(), fitted("felrec-s", BASE), limits=FORGETTING)


def test_a_process_without_it_does_not_mind(place: Place) -> None:
    """One that was started without the option loads what another one built."""
    with members(place, 1, FORGETTING) as (writer,):
        begin(writer)
        other = open_member(place)
        try:
            let_go(writer)
            wait_until(lambda: other._state.users.known == 9 and follows(other, writer))
        finally:
            other.close()
