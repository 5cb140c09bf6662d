"""The stream as a consumer sees it, with a real Redis server."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from felrec.errors import ConfigError
from felrec.service.streams.parsing import read_messages
from felrec.service.streams.protocol import Message, Rejection, StreamUnreachable
from felrec.service.streams.redis_stream import RedisStream
from redis_server import RedisServer


@contextmanager
def consumer(server: RedisServer, name: str = "one", take_over_seconds: float = 60.0) -> Iterator[RedisStream]:
    with closing(RedisStream(server.address, "events", "felrec", name, take_over_seconds=take_over_seconds)) as stream:
        yield stream


def users(messages: list[Message]) -> list[str]:
    return read_messages(messages, now=2e9).events.users


def test_entries_are_events_as_fields_or_as_json(server: RedisServer) -> None:
    server.client.xadd("events", {"user_id": "ada", "product": "tea", "ts": "1700000000.5", "price": "3"}, id="1-0")
    server.client.xadd("events", {"event": '{"user": "bob",\n "item": 7, "time": "2024-01-01"}'}, id="2-0")
    server.client.xadd("events", {"user": "cy", "item": "12"}, id="1750000000000-0")
    with consumer(server) as stream:
        events, _, rejected, _ = read_messages(stream.read(10, 0.1), now=1_760_000_000)
    assert events.users == ["ada", "bob", "cy"]
    assert events.items == ["tea", "7", "12"]
    assert events.times.tolist() == [1_700_000_000.5, 1_704_067_200.0, 1_750_000_000.0]  # the last as Redis got it
    assert rejected == []


@pytest.mark.parametrize(
    "fields",
    [{"user": "ada"}, {"event": "{broken"}, {"event": "7"}, {b"user": b"\xff", b"item": b"1"}, {"a": " "}],
    ids=["no item", "no json", "no object", "no text", "blank"],
)
def test_bad_entries_are_rejected_alone(server: RedisServer, fields: dict[str, str]) -> None:
    server.client.xadd("events", fields)
    server.client.xadd("events", {"user": "ada", "item": "tea"})
    with consumer(server) as stream:
        messages = stream.read(10, 0.1)
        events, _, rejected, _ = read_messages(messages, now=2e9)
        assert events.users == ["ada"]
        assert [one.message for one in rejected] == messages[:1]
        stream.reject(rejected)
    (_, kept), *others = server.client.xrange("events:rejected")
    assert kept[b"reason"].decode() == rejected[0].reason
    assert kept[b"body"] == messages[0].body
    assert not others


def test_what_was_not_acknowledged_comes_again_and_the_note_tells_what_the_store_has(server: RedisServer) -> None:
    for n in range(5):
        server.client.xadd("events", {"user": n, "item": "tea"})
    with consumer(server) as stream:
        step = stream.step(stream.read(3, 0.1), {})
        assert users(list(step.fresh)) == ["0", "1", "2"]
        notes = dict(step.notes)  # it was appended, and then the consumer died
    with consumer(server) as stream:
        again = stream.read(10, 0.1)
        assert users(again) == ["0", "1", "2"]
        step = stream.step(again, notes)
        assert not step.fresh
        stream.acknowledge(step.settled)
        rest = stream.step(stream.read(10, 0.1), notes)
        assert users(list(rest.fresh)) == ["3", "4"]
        assert rest.expected == notes


def test_entries_of_a_consumer_that_stopped_are_taken_over(server: RedisServer) -> None:
    for n in range(4):
        server.client.xadd("events", {"user": n, "item": "tea"})
    with consumer(server, "dead") as dead, consumer(server, "heir", take_over_seconds=0.01) as heir:
        assert users(dead.read(2, 0.1)) == ["0", "1"]
        time.sleep(0.1)  # longer than it takes to be taken for dead
        first = heir.read(10, 0.1)
        assert users(first) == ["0", "1"]
        heir.acknowledge(heir.step(first, {}).settled)
        assert users(heir.read(10, 0.1)) == ["2", "3"]


def test_entries_in_work_elsewhere_are_not_in_the_store(server: RedisServer) -> None:
    for n in range(4):
        server.client.xadd("events", {"user": n, "item": "tea"})
    with consumer(server, "one") as one, consumer(server, "two") as two:
        slow, fast = one.read(2, 0.1), two.read(2, 0.1)
        notes = dict(two.step(fast, {}).notes)
        assert not two.step(fast, notes).fresh
        assert one.step(slow, notes).fresh == slow


def test_a_server_that_forgot_the_group_delivers_nothing_twice(server: RedisServer) -> None:
    for n in range(6):
        server.client.xadd("events", {"user": n, "item": "tea"})
    server.client.save()
    with consumer(server) as stream:
        step = stream.step(stream.read(4, 0.1), {})
        stream.acknowledge(step.settled)
        newest = stream.read(10, 0.1)
        server.kill()
        with pytest.raises(StreamUnreachable):
            stream.read(1, 0.1)
        server.start()
        again = stream.read(10, 0.1)
        assert len(again) == 6
        assert users(list(stream.step(again, step.notes).fresh)) == ["4", "5"]
        server.client.xgroup_setid("events", "felrec", "0")
        late = stream.step(newest, step.notes)  # they were read before the crash, and will be delivered again
        assert not late.fresh
        assert not late.settled


def test_a_deleted_group_begins_again(server: RedisServer) -> None:
    server.client.xadd("events", {"user": "ada", "item": "tea"})
    with consumer(server) as stream:
        messages = stream.read(10, 0.1)
        server.client.xgroup_destroy("events", "felrec")
        with pytest.raises(StreamUnreachable):
            stream.step(messages, {})
        assert not stream.step(messages, {}).fresh  # they are left alone, because they are delivered again
        server.client.delete("events")
        with pytest.raises(StreamUnreachable):
            stream.lag()
        assert stream.read(10, 0.1) == []


def test_deleted_entries_are_rejected(server: RedisServer) -> None:
    entry = server.client.xadd("events", {"user": "ada", "item": "tea"})
    with consumer(server) as stream:
        stream.read(10, 0.1)
    server.client.xdel("events", entry)
    with consumer(server) as stream:
        assert len(read_messages(stream.read(10, 0.1), now=2e9).rejected) == 1


def test_lag_is_what_is_not_acknowledged(server: RedisServer) -> None:
    for n in range(5):
        server.client.xadd("events", {"user": n, "item": "tea"})
    with consumer(server) as stream:
        messages = stream.read(2, 0.1)
        assert stream.lag() == 5
        stream.acknowledge(messages)
        assert stream.lag() == 3
        stream.reject([Rejection(messages[0], "why not")])
        assert stream.lag() == 3


def test_a_name_that_is_no_stream_is_the_users_mistake(server: RedisServer) -> None:
    server.client.set("events", "a string")
    with consumer(server) as stream, pytest.raises(ConfigError, match="WRONGTYPE"):
        stream.read(1, 0.1)
