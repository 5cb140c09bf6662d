"""A store that another one takes the place of: nothing gets into its inbox after the last look at it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count

import psycopg
import pytest

from felrec.errors import StoreMoved
from felrec.store.location import StoreLocation
from felrec.store.postgres import PostgresStore
from felrec.store.protocol import MOVED, Batch
from felrec.store.sql_store import SqlStore
from places import Place
from postgresql import PostgresServer
from small_stores import EMPTY_BASE, IDENTITY

NOTE = {MOVED: '{"store": "another one", "run": "a run"}'}
_numbers = count()


@pytest.fixture
def pair(postgres: PostgresServer) -> Iterator[tuple[PostgresStore, PostgresStore]]:
    """A store that leads, and another process that has it open."""
    given, name = postgres.address(), f"moving-{next(_numbers)}"
    with (
        PostgresStore(given, namespace=name, shared=True, patience=60.0) as writer,
        PostgresStore(given, namespace=name, shared=True, patience=60.0) as other,
    ):
        assert writer.lead("writer", 600)
        writer.begin(IDENTITY, EMPTY_BASE)
        yield writer, other


@contextmanager
def somebody_waits(server: PostgresServer) -> Iterator[Callable[[], None]]:
    """Waits until a session of the server waits for a lock of the inbox."""
    waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation::regclass::text LIKE '%inbox'"
    with psycopg.connect(server.socket_address, autocommit=True) as admin:

        def wait() -> None:
            until = time.monotonic() + 30
            while admin.execute(waiting).fetchall() == [(0,)]:
                assert time.monotonic() < until, "nobody waits"
                time.sleep(0.005)

        yield wait


@pytest.mark.parametrize("before", [0, 12])  # a statement that was used often is prepared, and waits elsewhere
def test_an_append_that_waited_for_the_move_is_refused(
    pair: tuple[PostgresStore, PostgresStore], postgres: PostgresServer, before: int
) -> None:
    writer, other = pair
    for _ in range(before):
        other.append("kept", b"")
    with ThreadPoolExecutor(1) as pool, somebody_waits(postgres) as wait:
        counters = writer._next_counters()
        with writer._database.transaction(counters):
            writer._database.close_inbox()
            writer._database.value("SELECT 1")  # until now nothing need have been sent
            appended = pool.submit(other.append, "late", b"")
            wait()
            writer._database.connection.execute("INSERT INTO meta VALUES (?, ?, 0)", (f"note:{MOVED}", NOTE[MOVED]))
        with pytest.raises(StoreMoved, match="another one has taken the place"):
            appended.result(60)
    assert len(writer.commands(100)) == before


def test_a_move_waits_for_appends_that_are_under_way(
    pair: tuple[PostgresStore, PostgresStore], postgres: PostgresServer
) -> None:
    writer, other = pair
    with ThreadPoolExecutor(1) as pool, somebody_waits(postgres) as wait:
        with other._database.appending() as connection:
            connection.execute("INSERT INTO inbox (kind, body, crc) VALUES ('n', '', 0) RETURNING number").fetchall()
            moved = pool.submit(writer.commit, Batch(notes=NOTE))
            wait()
            assert MOVED not in writer.notes()
        moved.result(60)
    assert writer.standing().inbox == 1


def test_all_that_was_appended_is_there_when_the_store_has_moved(place: Place) -> None:
    """Others append as fast as they can meanwhile."""
    writer, others = place(), [place() for _ in range(3)]
    assert writer.lead("writer", 600)
    writer.begin(IDENTITY, EMPTY_BASE)
    numbers, enough = list[int](), threading.Event()

    def append(store: SqlStore) -> None:
        while True:
            try:
                numbers.append(store.append("n", b""))
            except StoreMoved:
                return
            if len(numbers) > 50:
                enough.set()

    with ThreadPoolExecutor(3) as pool:
        appending = [pool.submit(append, store) for store in others]
        assert enough.wait(60)
        writer.commit(Batch(notes=NOTE))
        seen = [command.number for command in writer.commands(1_000_000)]
        for one in appending:
            one.result(60)
    assert sorted(numbers) == seen
    assert [command.number for command in writer.commands(1_000_000)] == seen


def test_a_location_is_noted_without_its_password(postgres: PostgresServer) -> None:
    there = StoreLocation.of(postgres.address(), "located")
    noted = there.without_password()
    assert "secret" not in noted.address
    assert noted.name == there.name
    for known, finds in ((postgres.address("another"), True), (postgres.address().replace("felrec:", "x:"), False)):
        assert ("secret" in noted.with_password_of(known).address) == finds
    with noted.with_password_of(postgres.address()).open("create") as store:
        assert store.name == there.name
        assert there.exists
    assert not StoreLocation.of(postgres.address(), "nothing").exists
