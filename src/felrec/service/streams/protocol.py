"""The interface of a stream: messages come out of it, and the store remembers which ones it has.

The store alone decides what was ingested: the note of a stream becomes durable in the transaction of the events, and
only if it still has the value from which the new one was computed. What the server of the stream remembers
(acknowledgements, committed offsets) decides only what is delivered next, and may be lost or late.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from felrec.errors import FelrecError


class StreamUnreachable(FelrecError):
    """The server of the stream does not answer at the moment; it is tried again."""


class Message(NamedTuple):
    """One entry of a stream."""

    place: tuple[int, int]  # Redis: the two parts of the id; Kafka: partition and offset
    body: bytes  # JSON, unless the message is bad
    time: float  # when it was put into the stream, in seconds since 1970: the time of an event without one


class Rejection(NamedTuple):
    """A message that is not an event, and why."""

    message: Message
    reason: str


class Step(NamedTuple):
    """What is left to do with some messages, given the notes of the store."""

    fresh: Sequence[Message]  # not in the store yet
    settled: Sequence[Message]  # can be acknowledged once the fresh ones are in the store
    expected: Mapping[str, str | None]  # notes as they must be when the fresh ones are appended; None: there is none
    notes: Mapping[str, str]  # notes as they become by it


class Stream(Protocol):
    """A stream, as one consumer of a group. Every method but `close` may raise StreamUnreachable."""

    @property
    def name(self) -> str:
        """The kind of stream, its name and the group, for logs and as the name of the note."""
        ...

    def read(self, most: int, seconds: float) -> list[Message]:
        """The next messages; waits up to so many seconds for the first. Some may come again."""
        ...

    def step(self, messages: Sequence[Message], notes: Mapping[str, str]) -> Step:
        """Compare messages with what the store has."""
        ...

    def acknowledge(self, messages: Sequence[Message]) -> None:
        """Tell the server that these need not be delivered again."""
        ...

    def reject(self, rejections: Sequence[Rejection]) -> None:
        """Keep bad messages beside the stream; they are safe when this returns."""
        ...

    def lag(self) -> int | None:
        """How many messages of the stream were not acknowledged yet, if the server knows."""
        ...

    def close(self) -> None:
        """Leave the group."""
        ...
