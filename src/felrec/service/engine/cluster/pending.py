"""Writes of this process that are not answered yet."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from felrec.errors import Unanswered
from felrec.service.engine.cluster.commands import Command
from felrec.service.engine.outcomes import Outcome
from felrec.service.engine.read_only import ReadOnlyEngine

_MAYBE = "a retry with the same Idempotency-Key is safe; without one, events may count twice"


@dataclass(eq=False)
class Write:
    """A command, and the future of its answer."""

    id: str
    command: Command
    durable: bool = False  # answered when it is durable, whether it is visible or not
    begun: float = field(default_factory=time.monotonic)
    stored: bool = False  # whether it is in the inbox
    tried: int | None = None  # the token of the term in which its outcome became unknown
    future: Future[Any] = field(default_factory=Future)

    def __post_init__(self) -> None:
        self.future.set_running_or_notify_cancel()  # a client that disconnects must not cancel its post


class Pending:
    """All of them, by id. Any thread."""

    def __init__(self, engine: ReadOnlyEngine) -> None:
        self._engine = engine
        self._writes: dict[str, Write] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._writes)

    def add(self, write: Write) -> None:
        """Begin to wait."""
        with self._lock:
            self._writes[write.id] = write

    def has(self, write: Write) -> bool:
        """Whether its client still waits."""
        return write.id in self._writes

    def remove(self, write: Write) -> bool:
        """Stop waiting; returns False if it was answered already."""
        with self._lock:
            return self._writes.pop(write.id, None) is not None

    def done(self, write: Write, answer: Any) -> None:
        """Answer a write."""
        if self.remove(write):
            write.future.set_result(answer)

    def failed(self, write: Write, error: BaseException) -> None:
        """Answer a write that failed."""
        if self.remove(write):
            write.future.set_exception(error)

    def heard(self, outcome: Outcome) -> None:
        """Answer a write whose outcome is in the change log, if it is one of this process."""
        write = self._writes.get(outcome.id)
        if write is None:
            return
        if outcome.refused:
            self.failed(write, outcome.refused.error())
            return
        try:
            answer = write.command.answer(self._engine, outcome.value)
        except Exception as error:  # such as NotFound: it was deleted again
            self.failed(write, error)
        else:
            self.done(write, answer)

    def undecided(self, token: int) -> list[Write]:
        """The writes that were tried in a term before the one with this token."""
        with self._lock:
            return [one for one in self._writes.values() if one.tried is not None and one.tried < token]

    def give_up(self, seconds: float) -> None:
        """Fail those that have waited for so long."""
        late = time.monotonic() - seconds
        with self._lock:
            overdue = [one for one in self._writes.values() if one.begun < late]
        for write in overdue:
            known = "is stored, but the writer has not applied it" if write.stored else "may be stored or not"
            message = f"no answer from the process that writes within {seconds:.0f} s: this {known}; {_MAYBE}"
            self.failed(write, Unanswered(message, retry_after=2.0))
