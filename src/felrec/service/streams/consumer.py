"""Move events from a stream into the inbox of a store: each one once, whatever dies."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Event
from typing import Protocol, TypeVar

import msgspec

from felrec.data.kinds import KindTable
from felrec.errors import NotesChanged, StoreBusy, StoreFull, StoreUnreachable
from felrec.service.engine.cluster.commands import Post, to_inbox
from felrec.service.engine.refused import Source, SourceMessage, refused_messages
from felrec.service.http.logs import note
from felrec.service.streams.parsing import read_messages
from felrec.service.streams.progress import Progress
from felrec.service.streams.protocol import Message, Rejection, Stream, StreamUnreachable
from felrec.store.protocol import Standing

T = TypeVar("T")
_PASSING = StreamUnreachable, StoreUnreachable, StoreBusy, StoreFull  # errors that end without anyone's doing
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 10.0  # seconds between two attempts
_NAMED = 20  # rejected messages of one read that the log names one by one


class Inbox(Protocol):
    """What a consumer needs of a `SharedStore`."""

    def append(
        self, kind: str, body: bytes, notes: Mapping[str, str] | None, expected: Mapping[str, str | None] | None
    ) -> int:
        """Make a command and the notes durable, or raise NotesChanged."""
        ...

    def notes(self) -> dict[str, str]:
        """All notes as they are now."""
        ...

    def drop_notes(self, names: Sequence[str]) -> None:
        """Remove notes."""
        ...

    def standing(self) -> Standing:
        """How many commands wait, among others."""
        ...


class Rejects(Protocol):
    """Where bad messages are kept: beside the stream, or in a file."""

    def reject(self, rejections: Sequence[Rejection]) -> None:
        """Keep them; they are safe when this returns."""
        ...


@dataclass(frozen=True)
class ConsumerLimits:
    """How much is taken at once."""

    batch: int = 1_000  # messages of one transaction
    inbox: int = 64  # commands that may wait for the writer; with more of them nothing is read
    poll_seconds: float = 1.0  # for the next message, and so for noticing that it shall stop


class StreamConsumer:
    """One stream, one store, one thread."""

    def __init__(
        self,
        stream: Stream,
        store: Inbox,
        rejects: Rejects,
        limits: ConsumerLimits,
        stopping: Event,
        kinds: KindTable | None = None,
    ) -> None:
        """`kinds` says what kinds of events mean; without it all count alike."""
        self._stream, self._store, self._rejects, self._limits = stream, store, rejects, limits
        self._stopping, self._kinds = stopping, kinds
        self._progress = Progress(stream.name)
        self._kept: set[tuple[int, int]] = set()  # places of the bad messages of this read that are safe already

    def run(self) -> None:
        """Ingest until it shall stop. What was not made durable by then is delivered again."""
        while not self._stopping.is_set():
            if messages := self._trying(self._read):
                self._trying(lambda: self._ingest(messages))
            self._trying(self._keep_refused)
            if self._progress.is_due:
                self._trying(self._report)
        self._progress.report(None, None)

    def _trying(self, work: Callable[[], T]) -> T | None:
        """Do something again and again while servers cannot be reached; None if it shall stop before."""
        wait, failed = _FIRST_WAIT, False
        while not self._stopping.is_set():
            try:
                done = work()
            except _PASSING as error:
                if not failed:
                    note("waiting", level=logging.WARNING, stream=self._stream.name, reason=str(error))
                failed = True
                self._stopping.wait(wait * random.uniform(0.5, 1.0))
                wait = min(2 * wait, _LONGEST_WAIT)
            else:
                if failed:
                    note("going on", stream=self._stream.name)
                return done
        return None

    def _read(self) -> list[Message]:
        """The next messages; none while the writer has enough to do."""
        if self._store.standing().inbox >= self._limits.inbox:
            self._stopping.wait(_FIRST_WAIT)
            return []
        return self._stream.read(self._limits.batch, self._limits.poll_seconds)

    def _ingest(self, messages: Sequence[Message]) -> None:
        """Append what the store does not have, then acknowledge. Doing it again changes nothing."""
        while True:
            step = self._stream.step(messages, self._store.notes())
            now = time.time()
            events, good, rejected, left_out = read_messages(step.fresh, now, self._kinds)
            self._keep(rejected)
            try:
                if len(events):
                    post = Post(events.in_time_order(now), source=self._source(good))
                    self._store.append(*to_inbox(post), step.notes, step.expected)
            except NotesChanged:
                continue  # another consumer of the group was faster: what it appended is not fresh any more
            break
        self._stream.acknowledge(step.settled)
        self._kept.clear()
        repeated = len(messages) - len(step.fresh)
        self._progress.count(events=len(events), rejected=len(rejected), left_out=left_out, repeated=repeated)

    def _source(self, messages: Sequence[Message]) -> Source:
        return Source(self._stream.name, [SourceMessage(*message) for message in messages])

    def _keep_refused(self) -> None:
        """Keep the messages of events that the writer had no room for. As below, they are never lost."""
        for name, refused in refused_messages(self._store.notes(), self._stream.name).items():
            rejections = [Rejection(Message(*msgspec.structs.astuple(one.message)), one.reason) for one in refused]
            self._rejects.reject(rejections)
            self._name(rejections)
            self._store.drop_notes([name])
            self._progress.count(events=0, rejected=len(rejections), left_out=0, repeated=0)

    def _keep(self, rejected: Sequence[Rejection]) -> None:
        """Keep bad messages before they count as done: after a crash they may be kept twice, and are never lost."""
        new = [one for one in rejected if one.message.place not in self._kept]
        if not new:
            return
        self._rejects.reject(new)
        self._kept.update(one.message.place for one in new)
        self._name(new)

    def _name(self, rejected: Sequence[Rejection]) -> None:
        for message, reason in rejected[:_NAMED]:
            note("rejected", level=logging.WARNING, stream=self._stream.name, place=message.place, reason=reason)

    def _report(self) -> None:
        self._progress.report(self._stream.lag(), self._store.standing().inbox)
