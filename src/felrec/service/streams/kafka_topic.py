"""A Kafka topic, read as one consumer of a group."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka import Message as Received

from felrec.errors import ConfigError, StoreError
from felrec.service.streams.protocol import Message, Rejection, Step, StreamUnreachable

ANSWER_SECONDS = 10.0  # a broker that takes longer does not answer


class KafkaTopic:
    """Its group divides the partitions; each goes on where the store is, and not where Kafka believes it to be."""

    def __init__(
        self, brokers: str, topic: str, group: str, notes: Callable[[], Mapping[str, str]], settings: Mapping[str, str]
    ) -> None:
        """`notes` are those of the store; `settings` are of librdkafka, for encryption and passwords for example."""
        self._topic, self._group, self._notes = topic, group, notes
        self._settings: dict[str, Any] = {"log_level": 3, **settings, "bootstrap.servers": brokers}
        self._producer: Producer | None = None  # for bad messages; most consumers never need it
        try:
            self._consumer = Consumer(
                {
                    "auto.offset.reset": "earliest",
                    **self._settings,
                    "group.id": group,
                    "enable.auto.commit": False,
                    "enable.auto.offset.store": False,
                }
            )
        except KafkaException as error:
            raise ConfigError(f"kafka: {error}; check the settings in the address") from error
        self._consumer.subscribe([topic], on_assign=self._assign)

    @property
    def name(self) -> str:
        """For logs; the store has a note for each partition."""
        return f"kafka:{self._topic}:{self._group}"

    def _note(self, partition: int) -> str:
        return f"consumed:kafka:{self._topic}:{partition}:{self._group}"

    def _assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Begin each partition after what the store has."""
        try:
            notes = self._notes()
            for one in consumer.committed(partitions, timeout=ANSWER_SECONDS):
                stored = int(notes.get(self._note(one.partition), 0))
                begin = max(stored, one.offset)  # what was rejected at the end is only known to Kafka
                if begin > 0:
                    self._check_end(consumer, one, stored)
                    next(each for each in partitions if each.partition == one.partition).offset = begin
        except (StoreError, KafkaException):
            pass  # it begins at what was committed, and `step` leaves out what the store has
        consumer.assign(partitions)

    def _check_end(self, consumer: Consumer, partition: TopicPartition, stored: int) -> None:
        end = consumer.get_watermark_offsets(partition, timeout=ANSWER_SECONDS)[1]
        if end < stored:
            raise ConfigError(
                f"{self.name}: partition {partition.partition} ends at {end}, but {stored} was ingested: the topic was "
                "created again; choose another --group"
            )

    def read(self, most: int, seconds: float) -> list[Message]:
        """The next messages, in order within each partition. The client itself connects again, and need not be told."""
        try:
            received = self._consumer.consume(most, seconds)
        except KafkaException as error:
            raise StreamUnreachable(f"{self.name}: {error}") from error
        messages = [_message(one) for one in received if one.error() is None]
        troubles = [one.error() for one in received if one.error() is not None]
        if (
            troubles and not messages
        ):  # else the messages count: their place is behind us, and they would not come again
            raise StreamUnreachable(f"{self.name}: {troubles[0]}")
        return messages

    def step(self, messages: Sequence[Message], notes: Mapping[str, str]) -> Step:
        """Leave out what the store has; the note of a partition is the offset that comes next."""
        stored = {partition: int(notes.get(self._note(partition), 0)) for (partition, _), _, _ in messages}
        fresh = [message for message in messages if message.place[1] >= stored[message.place[0]]]
        ends: dict[int, int] = {}
        for (partition, offset), _, _ in fresh:
            ends[partition] = max(ends.get(partition, 0), offset + 1)
        expected = {self._note(partition): notes.get(self._note(partition)) for partition in ends}
        return Step(fresh, messages, expected, {self._note(partition): str(end) for partition, end in ends.items()})

    def acknowledge(self, messages: Sequence[Message]) -> None:
        """Commit the offsets to Kafka too, for the next start and for tools that show the lag."""
        ends = dict(sorted(message.place for message in messages))
        offsets = [TopicPartition(self._topic, partition, offset + 1) for partition, offset in ends.items()]
        try:
            if offsets:
                self._consumer.commit(offsets=offsets, asynchronous=True)
        except KafkaException:
            pass  # the store knows better

    def reject(self, rejections: Sequence[Rejection]) -> None:
        """Produce bad messages to the topic TOPIC.rejected."""
        producer = self._producer = self._producer or Producer({**self._settings, "enable.idempotence": True})
        failed: list[KafkaError] = []
        for ((partition, offset), body, _), reason in rejections:
            producer.produce(
                f"{self._topic}.rejected",
                value=body,
                headers={"partition": str(partition), "offset": str(offset), "reason": reason},
                on_delivery=lambda error, _: failed.append(error) if error else None,
            )
        if producer.flush(ANSWER_SECONDS) or failed:
            producer.purge()
            raise StreamUnreachable(f"{self.name}: {failed[0] if failed else 'no broker takes the rejected messages'}")

    def lag(self) -> int | None:
        """Messages after those that were read, in the partitions of this consumer."""
        try:
            places = self._consumer.position(self._consumer.assignment())
            ends = [self._consumer.get_watermark_offsets(one, cached=True)[1] for one in places]
        except KafkaException:
            return None
        return sum(max(0, end - one.offset) for one, end in zip(places, ends, strict=True) if one.offset >= 0)

    def close(self) -> None:
        """Leave the group, so that others get the partitions at once."""
        self._consumer.close()


def _message(received: Received) -> Message:
    partition, offset, body = received.partition(), received.offset(), received.value()
    assert partition is not None
    assert offset is not None
    return Message((partition, offset), bytes(body or b""), received.timestamp()[1] / 1_000)
