"""Events travel from a real Redis server into a real store, each one once, whatever dies."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from felrec.data.events import EventColumns
from felrec.errors import StoreFull, StoreUnreachable
from felrec.service.engine.cluster.commands import Asked, Post
from felrec.service.engine.cluster.encoding import decode
from felrec.service.engine.cluster.member import Member
from felrec.service.engine.identity import begin
from felrec.service.engine.limits import Limits
from felrec.service.streams.consumer import ConsumerLimits, StreamConsumer
from felrec.service.streams.opening import open_stream
from felrec.service.streams.protocol import Rejection
from felrec.service.streams.rejected_file import RejectedFile
from felrec.store.protocol import Batch
from felrec.store.sql_store import SqlStore
from felrec.store.sqlite import SqliteStore
from kafka_cluster import KafkaCluster
from places import Place
from redis_server import RedisServer
from small_stores import EMPTY_BASE, IDENTITY
from stores import fitted

each_kind = pytest.mark.parametrize("place", ["sqlite", "postgresql"], indirect=True)  # of store; none listens here
SMALL = ConsumerLimits(batch=7, inbox=1_000_000, poll_seconds=0.05)


@pytest.fixture
def store(place: Place) -> SqlStore:
    """A store that is shared and filled. Nobody applies its commands, so they can be counted."""
    store = place()
    assert store.lead("test", 600)
    store.begin(IDENTITY, EMPTY_BASE)
    return store


def posts(store: SqlStore) -> list[EventColumns]:
    """The events of each post in the inbox, in order."""
    commands = [decode(command.body, Asked).command for command in store.commands(1_000_000)]
    return [command.events for command in commands if isinstance(command, Post)]


def ingested(store: SqlStore) -> list[str]:
    """The users of all events in the inbox, in order."""
    return [user for events in posts(store) for user in events.users]


def add(server: RedisServer, users: Sequence[object]) -> None:
    with server.client.pipeline(transaction=False) as pipeline:
        for user in users:
            pipeline.xadd("events", {"user": str(user), "item": "tea"})
        pipeline.execute()


def eventually(true: Callable[[], bool], what: str) -> None:
    for _ in range(1_200):
        if true():
            return
        time.sleep(0.05)
    raise AssertionError(f"not within a minute: {what}")


class Consuming:
    """A consumer in a thread, until the end of its block."""

    def __init__(self, address: str, store: SqlStore, rejects: Any = None, limits: ConsumerLimits = SMALL) -> None:
        self._stopping = threading.Event()
        self._stream = open_stream(address, "felrec", "a test", store.notes)
        self._consumer = StreamConsumer(self._stream, store, rejects or self._stream, limits, self._stopping)
        self._thread = threading.Thread(target=self._consumer.run)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()
        self._stream.close()


def command(address: str, place: Place, *more: str) -> list[str]:
    start, namespace = (
        "from felrec.cli import main; main()",
        ("--namespace", place.namespace) if place.namespace else (),
    )
    return [sys.executable, "-c", start, "consume", address, "--store", place.address, *namespace, *more]


@contextmanager
def running(*commands: list[str]) -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that are ended at the end."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    started = [subprocess.Popen(words, env=environment, stderr=subprocess.DEVNULL, text=True) for words in commands]
    try:
        yield started
    finally:
        for process in started:
            process.terminate()
            process.wait(60)


def logged(server: RedisServer, words: list[str], until_users: int, of: SqlStore) -> list[dict[str, Any]]:
    """What a command logs of its stream until it has nothing left to do, and is asked to stop."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(words, env=environment, stderr=subprocess.PIPE, text=True) as process:
        eventually(lambda: len(ingested(of)) == until_users, "the events")
        eventually(lambda: server.client.xinfo_groups("events")[0]["lag"] == 0, "all delivered")
        eventually(lambda: server.client.xpending("events", "felrec")["pending"] == 0, "all acknowledged")
        process.send_signal(signal.SIGTERM)
        lines = [json.loads(line) for line in process.communicate(timeout=60)[1].splitlines()]
    assert process.returncode == 0
    return [line for line in lines if "stream" in line]  # without what the store has to say


@each_kind
def test_bad_messages_stop_nothing_and_are_kept(server: RedisServer, store: SqlStore, tmp_path: Path) -> None:
    for n in range(20):
        server.client.xadd("events", {"user": n, "item": "tea"} if n % 4 else {"event": f"{{bad {n}"})
    file = tmp_path / "rejected.jsonl"
    with Consuming(f"{server.address}/events", store, RejectedFile(file, "redis:events:felrec")):
        eventually(lambda: len(ingested(store)) == 15, "all events")
        eventually(lambda: server.client.xpending("events", "felrec")["pending"] == 0, "all acknowledged")
    kept = [json.loads(line) for line in file.read_text().splitlines()]
    assert [one["body"] for one in kept] == [f"{{bad {n}" for n in range(0, 20, 4)]
    assert {one["reason"] for one in kept} == {"not valid JSON in UTF-8"}
    assert ingested(store) == [str(n) for n in range(20) if n % 4]


@each_kind
def test_bad_messages_are_kept_once_while_the_store_is_away(
    server: RedisServer, store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    append, failures = store.append, iter(range(3))

    def sometimes(*arguments: Any) -> int:
        if next(failures, None) is not None:
            raise StoreUnreachable("the database does not answer")
        return append(*arguments)

    monkeypatch.setattr(store, "append", sometimes)
    server.client.xadd("events", {"event": "bad"})
    add(server, ["ada"])
    with Consuming(f"{server.address}/events", store):
        eventually(lambda: ingested(store) == ["ada"], "the event")
    assert server.client.xlen("events:rejected") == 1


@each_kind
def test_nothing_is_read_while_the_inbox_is_full(server: RedisServer, store: SqlStore) -> None:
    add(server, range(100))
    limits = ConsumerLimits(batch=10, inbox=3, poll_seconds=0.05)
    with Consuming(f"{server.address}/events", store, limits=limits):
        eventually(lambda: len(ingested(store)) == 30, "three commands")
        time.sleep(0.5)
        assert len(ingested(store)) == 30
        assert server.client.xinfo_groups("events")[0]["lag"] == 70


@each_kind
def test_two_consumers_share_a_stream(server: RedisServer, store: SqlStore, place: Place) -> None:
    address = f"{server.address}/events"
    with Consuming(address, store), Consuming(address, place()):
        for start in range(0, 1_000, 100):
            add(server, range(start, start + 100))
        eventually(lambda: len(ingested(store)) >= 1_000, "all events")
    assert Counter(ingested(store)) == Counter(map(str, range(1_000)))


@each_kind
def test_a_restarted_server_is_reached_again(server: RedisServer, store: SqlStore) -> None:
    """Twice it forgets what it delivered and what was acknowledged, as after a crash."""
    add(server, range(200))
    server.client.save()
    with Consuming(f"{server.address}/events", store):
        for least in (50, 120):
            eventually(lambda least=least: len(ingested(store)) >= least, "some events")  # type: ignore[misc]
            server.kill()
            time.sleep(0.3)
            server.start()
        add(server, range(200, 300))
        eventually(lambda: len(ingested(store)) >= 300, "all events")
        eventually(lambda: server.client.xpending("events", "felrec")["pending"] == 0, "all acknowledged")
    assert Counter(ingested(store)) == Counter(map(str, range(300)))


@each_kind
@pytest.mark.slow
def test_each_event_is_ingested_once_although_consumers_are_killed(
    server: RedisServer, store: SqlStore, place: Place
) -> None:
    chance, total = random.Random(0), 1_000
    add(server, range(total))

    def consumers(max_inbox: int) -> list[list[str]]:
        options = "--batch", "5", "--max-inbox", str(max_inbox)
        return [command(f"{server.address}/events", place, "--consumer", name, *options) for name in ("one", "two")]

    for most in (80, 160):  # batches, so that events are left however late the kill is
        before = len(ingested(store))
        with running(*consumers(most)) as processes:
            eventually(lambda before=before: len(ingested(store)) > before, "more events")  # type: ignore[misc]
            time.sleep(chance.uniform(0, 0.05))
            for process in processes:
                process.kill()
        assert [process.returncode for process in processes] == [-signal.SIGKILL] * 2
        assert before < len(ingested(store)) < total
    with running(*consumers(total)):
        eventually(lambda: len(ingested(store)) >= total, "all events")
        eventually(lambda: server.client.xpending("events", "felrec")["pending"] == 0, "all acknowledged")
    assert Counter(ingested(store)) == Counter(map(str, range(total)))


@each_kind
def test_a_table_of_kinds_says_what_events_are_worth(server: RedisServer, store: SqlStore, place: Place) -> None:
    """Events that it leaves out are done, and not rejected, also where nothing else is in a batch."""
    for kind in ("spam", "view", "spam", "spam", "purchase"):
        server.client.xadd("events", {"user": kind, "item": "tea", "event_type": kind})
    server.client.xadd("events", {"user": "grumbler", "item": "tea", "rating": "1.5"})
    server.client.xadd("events", {"event": '{"user": "fan", "item": "tea", "kind": "like", "value": 5}'})
    server.client.xadd("events", {"user": "nobody", "item": "tea", "rating": "great"})
    table = "--kinds", "view=context,purchase=3,spam=ignore,rating<=2=negative"
    lines = logged(server, command(f"{server.address}/events", place, "--batch", "2", *table), until_users=4, of=store)
    weights = {user: weight for events in posts(store) for user, weight in weights_by_user(events)}
    assert weights == {"view": 0, "purchase": 3, "grumbler": -1, "fan": 1}
    assert (lines[-1]["events"], lines[-1]["left_out"], lines[-1]["rejected"]) == (4, 3, 1)
    ((_, kept),) = server.client.xrange("events:rejected")
    assert kept[b"reason"] == b"value: give a finite number, such as a rating"


def weights_by_user(events: EventColumns) -> Iterator[tuple[str, float]]:
    assert events.weights is not None
    return zip(events.users, events.weights.tolist(), strict=True)


@each_kind
def test_the_command_logs_and_stops(server: RedisServer, store: SqlStore, place: Place) -> None:
    add(server, ["ada"])
    server.client.xadd("events", {"event": "{bad"})
    lines = logged(server, command(f"{server.address}/events", place), until_users=1, of=store)
    assert [line["message"] for line in lines] == ["rejected", "consumed"]
    assert lines[0]["reason"] == "not valid JSON in UTF-8"
    assert (lines[1]["events"], lines[1]["rejected"], lines[1]["repeated"]) == (1, 1, 0)


def test_a_service_applies_what_was_consumed(server: RedisServer, tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    member = Member.open(SqliteStore(path, shared=True), fitted(), empty=True)
    try:
        add(server, [f"user {n % 10}" for n in range(300)])
        with SqliteStore(path, shared=True) as store, Consuming(f"{server.address}/events", store):
            eventually(lambda: member.health().events == 300, "all applied")
            eventually(lambda: store.standing().inbox == 0, "an empty inbox")
        assert len(member.user("user 3").history) == 30
    finally:
        member.close()


@each_kind
def test_events_that_do_not_fit_are_kept_with_the_bad_messages(server: RedisServer, place: Place) -> None:
    """Also if the consumer that sent them has ended before the writer refuses them."""
    two_users = replace(Limits(), users=2)
    with place() as store:
        assert store.lead("a stopped process", 600)  # nobody applies events
        begin(store, fitted(), empty=True)
        add(server, ["ada", "bob"])
        with Consuming(f"{server.address}/events", store):
            add(server, ["ada", "eve", "bob", "dan"])
            server.client.xadd("events", {"event": '{"user": "ida", "item": "tea", "note": "as it came"}'})
            eventually(lambda: len(ingested(store)) == 7, "all events")
            eventually(lambda: server.client.xpending("events", "felrec")["pending"] == 0, "all acknowledged")
        assert not server.client.exists("events:rejected")
        store.resign()
    member = Member.open(place(), fitted(), limits=two_users, empty=True)
    try:
        with place() as store, Consuming(f"{server.address}/events", store):
            eventually(lambda: server.client.xlen("events:rejected") == 3, "the refused ones")
            add(server, ["zoe"])  # of a batch of such events alone nothing else is stored
            eventually(lambda: server.client.xlen("events:rejected") == 4, "the last one")
            eventually(lambda: not [name for name in store.notes() if name.startswith("refused")], "no notes left")
        assert member.health().events == 4
    finally:
        member.close()
    kept = [entry for _, entry in server.client.xrange("events:rejected")]
    assert [json.loads(entry[b"body"])["user"] for entry in kept] == ["eve", "dan", "ida", "zoe"]
    assert json.loads(kept[2][b"body"])["note"] == "as it came"
    assert {entry[b"reason"].split(b":")[0] for entry in kept} == {b"no room for a new user"}
    assert len({entry[b"entry"] for entry in kept}) == 4


def test_what_was_consumed_waits_for_a_full_disk_of_the_writer(
    server: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteStore(tmp_path / "store.sqlite", shared=True)
    commit, failures = store.commit, iter(range(2))

    def sometimes(batch: Batch) -> None:
        if batch.blocks and next(failures, None) is not None:
            raise StoreFull("the disk is full")
        commit(batch)

    monkeypatch.setattr(store, "commit", sometimes)
    member = Member.open(store, fitted(), empty=True)
    try:
        add(server, range(10))
        with SqliteStore(store.path, shared=True) as other, Consuming(f"{server.address}/events", other):
            eventually(lambda: member.health().events == 10, "all applied")
    finally:
        member.close()
    assert next(failures, None) is None


def test_a_consumer_loads_no_torch() -> None:
    loads = "import sys, felrec.service.streams.consumer, felrec.store.opening; print('torch' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    found = subprocess.run([sys.executable, "-c", loads], env=environment, capture_output=True, text=True, timeout=120)
    assert found.stdout.strip() == "False", found.stderr


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_kafka_too(store: SqlStore) -> None:
    """Two consumers one after the other, of which the first stops in the middle."""
    cluster = KafkaCluster()
    bodies = [json.dumps({"user": str(n), "item": "tea"}).encode() for n in range(100)]
    cluster.produce("events", [*bodies[:30], b"bad"], partition=0)
    cluster.produce("events", bodies[30:50], partition=1)
    address = f"kafka://{cluster.brokers}/events?log_level=0&session.timeout.ms=6000"
    with Consuming(address, store):
        eventually(lambda: len(ingested(store)) >= 7, "some events")
    cluster.produce("events", bodies[50:], partition=2)
    with Consuming(address, store):
        eventually(lambda: len(ingested(store)) >= 100, "all events")
    assert Counter(ingested(store)) == Counter(map(str, range(100)))
    assert [one.value() for one in cluster.messages("events.rejected", 1)] == [b"bad"]


def test_the_file_of_rejected_messages_grows(tmp_path: Path) -> None:
    from felrec.service.streams.protocol import Message

    file = RejectedFile(tmp_path / "rejected.jsonl", "kafka:events:felrec")
    for n in range(2):
        file.reject([Rejection(Message((0, n), b"\xff", 5.0), "why")])
    lines = [json.loads(line) for line in (tmp_path / "rejected.jsonl").read_text().splitlines()]
    assert [one["place"] for one in lines] == [[0, 0], [0, 1]]
    assert lines[0] == {
        "stream": "kafka:events:felrec",
        "place": [0, 0],
        "time": 5.0,
        "reason": "why",
        "body": "\\xff",
    }
