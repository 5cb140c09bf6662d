"""A Redis stream, read as one consumer of a group."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from felrec.errors import ConfigError
from felrec.service.streams.ingested import Id, Ingested, parse_id, spell
from felrec.service.streams.parsing import to_json
from felrec.service.streams.protocol import Message, Rejection, Step, StreamUnreachable

MOST_PENDING = 100_000  # entries that consumers of the group may have in work
ANSWER_SECONDS = 10.0  # a server that takes longer does not answer
_GONE = redis.ConnectionError, redis.TimeoutError, redis.BusyLoadingError, redis.ReadOnlyError


class Delivered(NamedTuple):
    """What the server knows of the group, at one moment."""

    last: Id  # the newest entry that any consumer was given
    pending: list[Id]  # given and not acknowledged
    first: Id  # the oldest entry that is still in the stream


class RedisStream:
    """Reads what was delivered to it before and not acknowledged, then what other consumers left, then new entries."""

    def __init__(
        self,
        address: str,
        stream: str,
        group: str,
        consumer: str,
        *,
        take_over_seconds: float = 60.0,  # entries of a consumer that was silent for so long are given to another one
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        # A reply that got lost left its entries with this consumer: nothing may be sent again without asking for them.
        self._client = redis.Redis.from_url(
            address, protocol=2, retry=Retry(NoBackoff(), 0), socket_timeout=ANSWER_SECONDS
        )
        self._stream, self._group, self._consumer = stream, group, consumer
        self._take_over, self._clock = take_over_seconds, clock
        self._begun = False  # whether the group exists, and what was delivered before was read
        self._looked = -float("inf")  # when it looked for what others left

    @property
    def name(self) -> str:
        """The name of the note in the store."""
        return f"redis:{self._stream}:{self._group}"

    @property
    def _note(self) -> str:
        return f"consumed:{self.name}"

    def read(self, most: int, seconds: float) -> list[Message]:
        """The next entries, oldest first where that can be known."""
        with self._reaching():
            if not self._begun:
                self._create_group()
                if own := self._delivered(most, "0", None):
                    return own
                self._begun = True
            return self._left_by_others(most) or self._delivered(most, ">", max(1, int(seconds * 1_000)))

    def _create_group(self) -> None:
        try:
            self._client.xgroup_create(self._stream, self._group, "0", mkstream=True)
        except redis.ResponseError as error:
            if "BUSYGROUP" not in str(error):
                raise

    def _delivered(self, most: int, after: str, block: int | None) -> list[Message]:
        answer: Any = self._client.xreadgroup(self._group, self._consumer, {self._stream: after}, most, block)
        return _messages(answer[0][1]) if answer else []

    def _left_by_others(self, most: int) -> list[Message]:
        """Take over entries of consumers that stopped; where there are more it looks again at once."""
        if self._clock() - self._looked < self._take_over / 2:
            return []
        idle = int(self._take_over * 1_000)
        answer: Any = self._client.xautoclaim(self._stream, self._group, self._consumer, idle, "0", most)
        if not answer[1]:
            self._looked = self._clock()
        return _messages(answer[1])

    def step(self, messages: Sequence[Message], notes: Mapping[str, str]) -> Step:
        """Compare entries with those in the store.

        Entries after the last one that the server knows to have delivered are left alone: it forgot about them in a
        crash, and delivers them again, perhaps to another consumer.
        """
        note = notes.get(self._note)
        before, delivered = Ingested.of_note(note), self._look()
        known = [message for message in messages if message.place in before or message.place <= delivered.last]
        fresh = [message for message in known if message.place not in before]
        after = before.after([message.place for message in fresh], delivered.last, delivered.pending, delivered.first)
        return Step(fresh, known, {self._note: note}, {self._note: after.to_note()})

    def _look(self) -> Delivered:
        with self._reaching(), self._client.pipeline(transaction=True) as look:
            if not self._begun:
                self._create_group()
            look.xinfo_groups(self._stream)
            look.xpending_range(self._stream, self._group, "-", "+", MOST_PENDING)
            look.xrange(self._stream, count=1)
            groups, pending, oldest = look.execute()
        if len(pending) == MOST_PENDING:
            raise ConfigError(f"{self.name}: over {MOST_PENDING:,} entries are not acknowledged; use another group")
        last = self._mine(groups)["last-delivered-id"]
        waiting = [parse_id(one["message_id"].decode()) for one in pending]
        return Delivered(parse_id(last.decode()), waiting, parse_id(oldest[0][0].decode()) if oldest else (0, 0))

    def acknowledge(self, messages: Sequence[Message]) -> None:
        """Take entries from what is pending."""
        with self._reaching():
            if messages:
                self._client.xack(self._stream, self._group, *(spell(message.place) for message in messages))

    def reject(self, rejections: Sequence[Rejection]) -> None:
        """Add bad entries to the stream STREAM:rejected."""
        with self._reaching(), self._client.pipeline(transaction=True) as work:
            for (place, body, _), reason in rejections:
                work.xadd(f"{self._stream}:rejected", {"entry": spell(place), "reason": reason, "body": body})
            work.execute()

    def lag(self) -> int | None:
        """Entries that were not delivered yet, or delivered and not acknowledged."""
        with self._reaching():
            groups: Any = self._client.xinfo_groups(self._stream)
        mine = self._mine(groups)
        return None if mine["lag"] is None else int(mine["lag"]) + int(mine["pending"])

    def _mine(self, groups: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        for group in groups:
            if group["name"] == self._group.encode():
                return group
        self._begun = False
        raise StreamUnreachable(f"{self.name}: somebody deleted the group")

    def close(self) -> None:
        """Close the connection. The group keeps the name of the consumer, for its next start."""
        self._client.close()

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        try:
            yield
        except redis.AuthenticationError as error:
            raise ConfigError(f"{self.name}: {error}; check the user and password of the address") from error
        except _GONE as error:
            self._begun = False
            raise StreamUnreachable(f"{self.name}: {error}") from error
        except redis.ResponseError as error:
            self._begun = False
            if "NOGROUP" in str(error) or "no such key" in str(error):  # somebody deleted it
                raise StreamUnreachable(f"{self.name}: {error}") from error
            raise ConfigError(f"{self.name}: {error}") from error


def _messages(entries: Sequence[tuple[bytes, Mapping[bytes, bytes]]]) -> list[Message]:
    """Entries as messages; one that was deleted has no fields, and so no body."""
    places = [parse_id(entry.decode()) for entry, _ in entries]
    return [
        Message(place, to_json(fields) if fields else b"", place[0] / 1_000)
        for place, (_, fields) in zip(places, entries, strict=True)
    ]
