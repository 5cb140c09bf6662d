"""The topic as a consumer sees it. The brokers are librdkafka's own test cluster, not Apache Kafka."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager

import pytest

from felrec.errors import ConfigError, StoreUnreachable
from felrec.service.streams.kafka_topic import KafkaTopic
from felrec.service.streams.parsing import read_messages
from felrec.service.streams.protocol import Message
from kafka_cluster import KafkaCluster

# The test cluster notices that a consumer has left only by its silence.
QUICK = {"log_level": "0", "session.timeout.ms": "6000", "heartbeat.interval.ms": "500"}


@pytest.fixture(scope="module")
def cluster() -> KafkaCluster:
    return KafkaCluster()


@contextmanager
def consumer(cluster: KafkaCluster, topic: str, notes: Mapping[str, str]) -> Iterator[KafkaTopic]:
    """A consumer of a group of its own for each topic: the test cluster mixes up topics of one group."""
    with closing(KafkaTopic(cluster.brokers, topic, topic, lambda: notes, QUICK)) as stream:
        yield stream


def read(stream: KafkaTopic, count: int) -> list[Message]:
    """So many messages, once the group has given the partitions to this consumer."""
    found: list[Message] = []
    for _ in range(60):
        if len(found) < count:
            found += stream.read(100, 0.5)
    return found


def body(user: str) -> bytes:
    return json.dumps({"user": user, "item": "tea"}).encode()


def users(messages: list[Message]) -> list[str]:
    return read_messages(messages, now=4e9).events.users


def test_the_store_decides_where_each_partition_goes_on(cluster: KafkaCluster) -> None:
    cluster.produce("places", [body(f"a{n}") for n in range(4)], partition=0)
    cluster.produce("places", [body(f"b{n}") for n in range(3)], partition=1)
    with consumer(cluster, "places", {}) as stream:
        messages = read(stream, 7)
        step = stream.step(messages, {})
        assert len(step.fresh) == 7
        assert step.notes == {"consumed:kafka:places:0:places": "4", "consumed:kafka:places:1:places": "3"}
        assert set(step.expected.values()) == {None}
        some = {"consumed:kafka:places:0:places": "3"}
        step = stream.step(messages, some)
        assert sorted(users(list(step.fresh))) == ["a3", "b0", "b1", "b2"]
        assert step.expected == {**some, "consumed:kafka:places:1:places": None}
    with consumer(cluster, "places", some) as stream:  # nothing was committed to Kafka
        assert sorted(users(read(stream, 4))) == ["a3", "b0", "b1", "b2"]


def test_what_was_acknowledged_is_not_read_again(cluster: KafkaCluster) -> None:
    cluster.produce("committed", [b"bad", b"worse", body("ada")])
    with consumer(cluster, "committed", {}) as stream:
        stream.acknowledge(read(stream, 3)[:2])
    with consumer(cluster, "committed", {}) as stream:
        assert users(read(stream, 1)) == ["ada"]


def test_without_the_store_it_begins_earlier_and_leaves_out_what_was_ingested(cluster: KafkaCluster) -> None:
    def unreachable() -> Mapping[str, str]:
        raise StoreUnreachable("the database does not answer")

    cluster.produce("earlier", [body("ada"), body("bob")])
    with closing(KafkaTopic(cluster.brokers, "earlier", "earlier", unreachable, QUICK)) as stream:
        messages = read(stream, 2)
        assert users(list(stream.step(messages, {"consumed:kafka:earlier:0:earlier": "1"}).fresh)) == ["bob"]


def test_a_topic_that_was_created_again_is_refused(cluster: KafkaCluster) -> None:
    cluster.produce("again", [body("ada")])
    notes = {"consumed:kafka:again:0:again": "500"}
    with consumer(cluster, "again", notes) as stream, pytest.raises(ConfigError, match="created again"):
        read(stream, 1)


def test_bad_messages_go_to_another_topic(cluster: KafkaCluster) -> None:
    cluster.produce("mixed", [b"{bad", body("ada"), b""])
    with consumer(cluster, "mixed", {}) as stream:
        events, _, rejected, _ = read_messages(read(stream, 3), now=4e9)
        assert events.users == ["ada"]
        stream.reject(rejected)
    kept = cluster.messages("mixed.rejected", 2)
    assert {one.value() or b"" for one in kept} == {b"{bad", b""}
    headers = [dict(one.headers()) for one in kept]
    assert {one["offset"] for one in headers} == {b"0", b"2"}
    assert all(one["reason"] for one in headers)


def test_lag_counts_what_was_not_read(cluster: KafkaCluster) -> None:
    cluster.produce("lagging", [body("ada")] * 10)
    with consumer(cluster, "lagging", {}) as stream:
        assert stream.lag() in (0, None)  # it has no partition yet
        found: list[Message] = []
        for _ in range(60):
            found = found or stream.read(4, 0.5)
        assert stream.lag() == 10 - len(found)


def test_settings_that_do_not_exist_are_the_users_mistake() -> None:
    with pytest.raises(ConfigError, match="no\\.such"):
        KafkaTopic("127.0.0.1:1", "events", "felrec", dict, {"no.such": "setting"})
