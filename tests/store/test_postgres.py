"""What only a server can do: fall silent, restart, refuse, or belong to somebody else."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import count
from pathlib import Path

import psycopg
import pytest

from dropping_proxy import DroppingProxy
from felrec.errors import (
    NotLeader,
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreMismatch,
    StoreUnreachable,
)
from felrec.service.engine.engine import Engine
from felrec.store.opening import open_store
from felrec.store.postgres import PostgresStore
from felrec.store.schema import FORMAT
from felrec.store.sql_store import SqlStore
from felrec.store.writing import put_meta
from postgresql import PASSWORD, PostgresServer
from small_stores import EMPTY_BASE, IDENTITY, one_block
from stores import NO_REBUILD, fitted, made_up, post, state_of

_numbers = count()


@pytest.fixture
def namespace() -> str:
    return f"shop-{next(_numbers)}"


def leading(address: str, namespace: str, patience: float = 5.0) -> PostgresStore:
    store = PostgresStore(address, namespace=namespace, shared=True, patience=patience)
    assert store.lead("first", 60)
    store.begin(IDENTITY, EMPTY_BASE)
    return store


@contextmanager
def proxied(server: PostgresServer) -> Iterator[tuple[DroppingProxy, str]]:
    proxy = DroppingProxy(server.port)
    try:
        yield proxy, server.address().replace(f":{server.port}/", f":{proxy.port}/")
    finally:
        proxy.close()


def again(store: SqlStore) -> None:
    """Take the lease again, as a process does that lost its connection."""
    for _ in range(100):
        with suppress(StoreUnreachable, StoreBusy):
            if store.lead("again", 60):
                return
    raise AssertionError("the lease cannot be taken")


def test_an_engine_goes_on_where_it_was(postgres: PostgresServer, namespace: str) -> None:
    model = fitted()
    engine = Engine.open(open_store(postgres.address(), namespace=namespace), model, limits=NO_REBUILD, empty=True)
    post(engine, made_up(300))
    engine.erase_user("user 3").result()
    state, events = state_of(engine), engine.health().events
    engine.close()
    with PostgresStore(postgres.address(), "read", namespace=namespace) as store:
        assert store.verify() == []
        assert store.size() > 0
    engine = Engine.open(open_store(postgres.address(), namespace=namespace), fitted(), limits=NO_REBUILD, empty=True)
    assert (state_of(engine), engine.health().events) == (state, events)
    engine.close()


def test_namespaces_know_nothing_of_one_another(postgres: PostgresServer) -> None:
    first, second = (leading(postgres.socket_address, name) for name in ("shop-a", "shop_b"))
    first.commit(replace(one_block(), change=b"x"))
    first.append("n", b"")
    assert second.load().users == []
    assert second.standing()[:2] == (0, 1)
    assert second.commands(10) == []
    first.close()
    second.close()


def test_a_store_of_an_earlier_format_is_marked_when_it_is_opened_to_write(
    postgres: PostgresServer, namespace: str
) -> None:
    """Its pages say themselves of which format they are; an earlier felrec could not read those written from now on."""

    def format_of(store: PostgresStore) -> int:
        return int(store._database.value("SELECT value FROM meta WHERE name = 'format'"))

    store = leading(postgres.address(), namespace)
    with store._database.appending() as connection:
        put_meta(connection, "format", str(FORMAT - 1))
    store.close()
    with PostgresStore(postgres.address(), "read", namespace=namespace) as reader:
        assert format_of(reader) == FORMAT - 1
    with PostgresStore(postgres.address(), "write", namespace=namespace) as writer:
        assert format_of(writer) == FORMAT
        assert writer.verify() == []


_NO_NAMES = ["", "public", "pg_shop", "Shop", 'a"; DROP SCHEMA public', "a" * 49, "information_schema"]


@pytest.mark.parametrize("name", _NO_NAMES)
def test_a_namespace_must_be_a_name(name: str) -> None:
    with pytest.raises(StoreError, match="namespace"):
        PostgresStore("postgresql://127.0.0.1:1/x", namespace=name)


def test_the_password_is_in_no_message(postgres: PostgresServer, namespace: str) -> None:
    store = leading(postgres.address(), namespace)
    messages = [store.name]
    store.close()
    for address in (
        postgres.address(password="a%20wrong%25word"),
        f"postgresql://felrec:{PASSWORD}@127.0.0.1:{postgres.port}/x",
        "postgresql://felrec:a%20secret%25word@127.0.0.1:1/x",
        postgres.address(database="nothing"),
    ):
        with pytest.raises(StoreError) as refused:
            PostgresStore(address, namespace=namespace)
        messages.append(str(refused.value))
    assert not [message for message in messages if "word" in message.replace("password", "")]
    assert not [message for message in messages if "\n" in message]


def test_a_file_has_no_namespace(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no namespaces"):
        open_store(tmp_path / "s", namespace="shop")


def test_a_server_that_is_not_right_is_refused_with_advice(postgres: PostgresServer, namespace: str) -> None:
    with psycopg.connect(postgres.socket_address, autocommit=True) as admin:
        admin.execute("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
        admin.execute("CREATE ROLE guest LOGIN")
        admin.execute("CREATE SCHEMA others CREATE TABLE things (id int)")
    socket, store = postgres.socket_address, leading(postgres.address(), namespace)
    with store._database.appending() as connection:
        connection.execute("UPDATE meta SET value = '99' WHERE name = 'format'")
    store.close()
    for address, name, kind, words in (
        (postgres.address("latin"), "shop", StoreError, "ENCODING 'UTF8'"),
        (socket.replace("felrec@", "guest@"), "shop", StoreError, "GRANT"),
        (f"{socket}&options=-c%20default_transaction_read_only%3Don", "new", StoreError, "read-only"),
        (socket, "others", StoreDamaged, "choose another namespace"),
        (socket, namespace, StoreMismatch, "upgrade felrec"),
    ):
        with pytest.raises(kind, match=words):
            PostgresStore(address, namespace=name)
    with pytest.raises(StoreError, match="no such store"):
        PostgresStore(socket, "write", namespace="missing")


def test_a_backup_is_made_by_the_server(postgres: PostgresServer, namespace: str, tmp_path: Path) -> None:
    with leading(postgres.address(), namespace) as store, pytest.raises(StoreError, match=r"pg_dump -n shop.*export"):
        store.backup(tmp_path / "copy")


def test_a_full_disk_leaves_nothing_and_the_store_goes_on(postgres: PostgresServer, namespace: str) -> None:
    with leading(postgres.address(), namespace) as store:
        counters = store._next_counters()
        with pytest.raises(StoreFull, match="free some space"), store._database.transaction(counters):  # noqa: PT012
            store._database.connection.execute("DELETE FROM meta")
            store._database.connection.execute("DO $$ BEGIN RAISE SQLSTATE '53100'; END $$")
        store.commit(one_block())
        assert store.verify() == []


def test_commits_are_durable_whatever_the_server_does_by_default(postgres: PostgresServer, namespace: str) -> None:
    address = f"{postgres.socket_address}&options=-c%20synchronous_commit%3Doff"
    with leading(address, namespace) as store:
        database, seen = store._database, []
        for durable in (True, False):
            with database.transaction(store._next_counters(), durable=durable):
                seen.append(database.value("SHOW synchronous_commit"))
        with database.appending() as connection:
            seen += connection.execute("SHOW synchronous_commit").fetchall()[0]
    assert seen == ["on", "off", "on"]


def test_a_lost_connection_ends_the_lease_and_it_can_be_taken_again_at_once(
    postgres: PostgresServer, namespace: str
) -> None:
    with leading(postgres.address(), namespace) as store, psycopg.connect(postgres.socket_address) as admin:
        store.commit(replace(one_block(), change=b"x"))
        token = store.standing().token
        with pytest.raises(StoreUnreachable), store._database.transaction(store._next_counters()):  # noqa: PT012
            pid = store._database.value("SELECT pg_backend_pid()")
            store._database.connection.execute("DELETE FROM users")
            admin.execute("SELECT pg_terminate_backend(%s, 10000)", (pid,))
        assert store.trouble() is not None
        with pytest.raises(NotLeader):
            store.commit(one_block(1))
        again(store)
        assert store.standing().token > token
        store.commit(one_block(1))
        assert store.trouble() is None
        assert len(store.load().users) == 2


def test_who_stops_within_a_transaction_holds_nobody_up(postgres: PostgresServer, namespace: str) -> None:
    with (
        leading(postgres.address(), namespace) as old,
        PostgresStore(postgres.address(), namespace=namespace, shared=True) as new,
    ):
        old.lead("first", 0)
        with pytest.raises(StoreUnreachable), old._database.transaction(old._next_counters()):  # noqa: PT012
            old._database.connection.execute("DELETE FROM users")
            again(new)
        new.commit(one_block())
        with pytest.raises(NotLeader):
            old.commit(one_block())
        assert not old.lead("first", 60)


def test_who_loads_a_store_may_take_its_time_between_two_portions(postgres: PostgresServer, namespace: str) -> None:
    """The limit for sessions that hang within a transaction is for those that hold locks of the writer."""
    with leading(postgres.address(), namespace, patience=0.5) as store:
        store.commit(one_block())
        with store._database.reading(large=True):
            assert len(store._database.connection.execute("SELECT row FROM users").fetchall()) == 1
            time.sleep(1.5)
            assert len(store._database.connection.execute("SELECT row FROM blocks").fetchall()) == 1


def test_a_restart_of_the_server_loses_nothing(postgres: PostgresServer, namespace: str) -> None:
    with leading(postgres.address(), namespace) as store:
        for n in range(3):
            number = store.append("n", b"%d" % n)
            store.commit(replace(one_block(n), change=b"%d" % n))
            postgres.control("restart", "-m", "immediate")
            assert number in [command.number for command in store.commands(10)]
        assert [change.body for change in store.changes(0, 5)] == [b"0", b"1", b"2"]
        assert len(store.load().events) == 3
        assert store.verify() == []


def test_a_server_that_falls_silent_is_given_up_and_comes_back(postgres: PostgresServer, namespace: str) -> None:
    with proxied(postgres) as (proxy, address), leading(address, namespace, patience=0.5) as store:
        store.commit(replace(one_block(), change=b"x"))
        store.append("n", b"")
        proxy.silent = True
        for call in (
            lambda: store.commit(one_block(1)),
            lambda: store.append("n", b""),
            store.standing,
            lambda: store.changes(1, 60),
            lambda: store.lead("first", 60),
        ):
            with pytest.raises(StoreUnreachable):
                call()
        assert isinstance(store.trouble(), StoreUnreachable)
        proxy.silent = False
        again(store)
        store.commit(replace(one_block(1), change=b"y"))
        assert [change.body for change in store.changes(0, 5)] == [b"x", b"y"]


def test_notifications_wake_whoever_waits(postgres: PostgresServer, namespace: str) -> None:
    with leading(postgres.address(), namespace) as writer, ThreadPoolExecutor(1) as pool:
        version = writer._database.version()
        waiting = pool.submit(writer._database.wait, "changes", version, 60)
        writer.append("n", b"")  # no news for those who wait for changes
        writer.commit(replace(one_block(), change=b"x"))
        assert waiting.result(60)


def test_without_psycopg_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("felrec.store.opening.find_spec", lambda _: None)
    with pytest.raises(StoreError, match=r"pip install .*\[postgresql\]"):
        open_store("postgresql:///x")
