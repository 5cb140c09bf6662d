"""A Kafka cluster for tests: librdkafka's own, which speaks the protocol over TCP and keeps messages in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from confluent_kafka import Consumer, Producer


class KafkaCluster:
    """It lives within its producer, in this process; consumers may be anywhere on this machine."""

    def __init__(self) -> None:
        self._producer = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "none:1", "log_level": 0})
        brokers = self._producer.list_topics(timeout=10).brokers.values()
        self.brokers = ",".join(f"{broker.host}:{broker.port}" for broker in brokers)

    def produce(self, topic: str, bodies: Sequence[bytes], partition: int = 0) -> None:
        for body in bodies:
            self._producer.produce(topic, value=body, partition=partition)
        assert self._producer.flush(10) == 0

    def messages(self, topic: str, count: int) -> list[Any]:
        """The first so many messages of a topic."""
        settings: dict[str, Any] = {"bootstrap.servers": self.brokers, "group.id": "a test", "log_level": 0}
        consumer = Consumer({**settings, "auto.offset.reset": "earliest"})
        consumer.subscribe([topic])
        found: list[Any] = []
        for _ in range(60):
            if len(found) < count:
                found += consumer.consume(count - len(found), 0.5)
        consumer.close()
        return found
