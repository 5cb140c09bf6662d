"""The single writer: a thread that makes queued events durable, then visible, and then resolves their futures."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from felrec.answers.types import Receipt
from felrec.errors import FelrecError, InvalidRequest, Overloaded, Stopped
from felrec.service.engine.committer import Committer, Submission
from felrec.service.engine.idempotency import IdempotencyStore
from felrec.service.engine.limits import Limits
from felrec.service.engine.outcomes import Awaited

_log = logging.getLogger(__name__)
_BLOCKS = 4  # blocks that are made durable together, unless one submission has more
_SHARE, _MOST = 0.25, 0.1  # of the time of a batch, and seconds, for background work after it: an import never pauses
T = TypeVar("T")


@dataclass
class Task(Generic[T]):
    """Other work that changes the store. A generator is work in pieces, between which others have their turn."""

    work: Callable[[], T] | Generator[None, None, T]
    awaited: Awaited | None = None  # answered by the batch that the work commits; that of a generator is not
    future: Future[T] = field(default_factory=Future)


class Background(Protocol):
    """Work in pieces that has to wait for posts."""

    @property
    def due(self) -> float:
        """When to do the next piece, by the clock `time.monotonic`; infinite if there is none."""
        ...

    def step(self) -> bool:
        """Do the next piece; returns False if that is not possible at the moment."""
        ...


class IngestThread:
    """A thread with a bounded queue."""

    def __init__(
        self, committer: Committer, answers: IdempotencyStore, limits: Limits, background: Sequence[Background]
    ) -> None:
        self._committer, self._answers, self._limits, self._background = committer, answers, limits, background
        self._queue: deque[Submission | Task[Any]] = deque()
        self._changed = threading.Condition()
        self._closing, self._draining = False, True
        self.waiting = 0  # events in the queue
        self._tasks = 0  # tasks in the queue
        self._pace = 0.1  # moving average of seconds per block of events
        self._thread = threading.Thread(target=self._run, name="felrec-ingest", daemon=True)
        self._thread.start()

    def submit(self, submission: Submission) -> Future[Receipt]:
        """Queue events, or return the future of the same submission if it is already queued."""
        submission.future.set_running_or_notify_cancel()  # a client that disconnects must not cancel its post
        if len(submission) > self._limits.submission:
            raise InvalidRequest(f"{len(submission)} events; send at most {self._limits.submission:,} at a time")
        with self._changed:
            if submission.key and (before := self._answers.waiting_for(submission.key)):
                return before
            self._check_open()
            seconds = self._blocks(self.waiting) * self._pace
            if self.waiting + len(submission) > self._limits.queue or seconds > self._limits.queue_seconds:
                raise self._overloaded(f"{self.waiting:,} events")
            if submission.key:
                self._answers.begin(submission.key, submission.future)
            self.waiting += len(submission)
            self._queue.append(submission)
            self._changed.notify()
        return submission.future

    def run(self, work: Callable[[], T] | Generator[None, None, T], awaited: Awaited | None = None) -> Future[T]:
        """Queue work for the ingest thread, which does it, or each piece of it, between two batches."""
        task = Task(work, awaited)
        task.future.set_running_or_notify_cancel()  # as above
        with self._changed:
            self._check_open()
            if self._tasks >= self._limits.tasks:
                raise self._overloaded(f"{self._tasks:,} changes of items and users")
            self._tasks += 1
            self._queue.append(task)
            self._changed.notify()
        return task.future

    def close(self, drain: bool) -> None:
        """Stop after processing the queue, or immediately."""
        with self._changed:
            self._closing, self._draining = True, drain
            dropped = [] if drain else list(self._queue)
            if not drain:
                self._queue.clear()
            self._changed.notify()
        for one in dropped:
            one.future.set_exception(_stopped())
        self._thread.join()

    def _check_open(self) -> None:
        if self._closing:
            raise _stopped()

    def _overloaded(self, queued: str) -> Overloaded:
        wait = min(30.0, max(1.0, self._blocks(self.waiting) * self._pace))
        return Overloaded(f"{queued} are queued; retry in {wait:.0f} s", wait)

    def _run(self) -> None:
        while (taken := self._take()) is not None:
            begun = time.monotonic()
            if taken and isinstance(taken[0], Task):
                self._do(taken[0])
            elif taken:
                self._write([one for one in taken if isinstance(one, Submission)])
            until = time.monotonic() + min(_MOST, _SHARE * (time.monotonic() - begun))
            while self._due() <= until and self._do_in_background():
                pass

    def _take(self) -> list[Submission | Task[Any]] | None:
        """Take what is in the queue, up to a few blocks of events, without waiting for more: one sync is for all of it.

        An empty list means that background work is due, None means stop.
        """
        with self._changed:
            while not self._queue and not self._closing:
                seconds = self._due() - time.monotonic()
                if seconds <= 0:
                    return []
                self._changed.wait(min(seconds, threading.TIMEOUT_MAX))
            if not self._queue:
                return None
            taken: list[Submission | Task[Any]] = []
            events = 0
            while self._queue:
                first = self._queue[0]
                alone = isinstance(first, Task)
                size = 0 if isinstance(first, Task) else len(first)
                if taken and (alone or events + size > _BLOCKS * self._limits.block):
                    break
                taken.append(self._queue.popleft())
                events += size
                if alone:
                    break
            return taken

    def _due(self) -> float:
        return min(work.due for work in self._background)

    def _do_in_background(self) -> bool:
        try:
            return min(self._background, key=lambda work: work.due).step()
        except FelrecError as error:
            _log.warning("background work failed and is tried again: %s", error)
        except Exception:
            _log.exception("background work failed")
        return False

    def _write(self, taken: list[Submission]) -> None:
        begun, submissions = time.perf_counter(), [one for one in taken if not self._came_before(one)]
        if not submissions:
            return
        done = 0
        try:
            for done, receipt in enumerate(self._committer.commit(submissions), start=1):
                self._end([submissions[done - 1]])
                submissions[done - 1].future.set_result(receipt)
        except Exception as error:
            self._failed(submissions[done:], error)
            return
        blocks = self._blocks(sum(map(len, submissions)))
        self._pace += (1 - 0.9**blocks) * ((time.perf_counter() - begun) / blocks - self._pace)

    def _do(self, task: Task[Any]) -> None:
        """Do a task, or a piece of it."""
        with self._changed:
            self._tasks -= 1
        try:
            if isinstance(task.work, Generator):
                next(task.work)
                self._queue_again(task)
            else:
                self._committer.awaited = task.awaited
                task.future.set_result(task.work())
        except StopIteration as end:
            task.future.set_result(end.value)
        except Exception as error:
            task.future.set_exception(error)
        finally:
            self._committer.awaited = None

    def _queue_again(self, task: Task[Any]) -> None:
        with self._changed:
            if not self._draining:
                raise _stopped()
            self._tasks += 1
            self._queue.append(task)

    def _came_before(self, submission: Submission) -> bool:
        """Resolve a submission that is already in the store with its first receipt."""
        if submission.key is None:
            return False
        try:
            receipt = self._answers.before(submission.key)
        except Exception as error:
            self._failed([submission], error)
            return True
        if receipt is not None:
            self._end([submission])
            submission.future.set_result(receipt)
        return receipt is not None

    def _failed(self, submissions: list[Submission], error: Exception) -> None:
        if not isinstance(error, FelrecError):
            _log.exception("a batch of events was not applied")
        self._end(submissions)
        for submission in submissions:
            submission.future.set_exception(error)

    def _end(self, submissions: list[Submission]) -> None:
        """Remove finished submissions from the bookkeeping."""
        with self._changed:
            for submission in submissions:
                self.waiting -= len(submission)
                if submission.key:
                    self._answers.end(submission.key)

    def _blocks(self, events: int) -> int:
        """Number of blocks of these events, which predicts the time: most of the cost of a block is fixed."""
        return -(-events // self._limits.block)


def _stopped() -> Stopped:
    return Stopped("the engine is shutting down; send this again later")
