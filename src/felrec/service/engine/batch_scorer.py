"""Answers concurrent questions in batches: one encoding, one product with all items."""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass, field

from felrec.answers.types import BestItems
from felrec.errors import Stopped
from felrec.service.engine.exposure import Exposure
from felrec.service.engine.ranking import recommend
from felrec.service.engine.serving_state import ServingState
from felrec.service.engine.types import Question

_TOGETHER = 16  # questions per batch; more would delay the first and gain little
_LEAST = 1, 2  # queue lengths that wake each thread: the second only helps under load, to leave the GIL to the writer


@dataclass(frozen=True)
class Asked:
    """A question in the queue."""

    question: Question
    future: Future[BestItems] = field(default_factory=Future)


class BatchScorer:
    """Threads that answer all queued questions together and never wait for more."""

    def __init__(self, state: ServingState, exposure: Exposure) -> None:
        self._state, self._exposure = state, exposure
        self._queue: deque[Asked] = deque()
        self._changed, self._closing = threading.Condition(), False
        self._threads = [
            threading.Thread(target=self._run, args=(least,), name="felrec-scorer", daemon=True) for least in _LEAST
        ]
        for thread in self._threads:
            thread.start()

    def ask(self, question: Question) -> Future[BestItems]:
        """Queue a question. It is skipped if its future is cancelled in time."""
        asked = Asked(question)
        with self._changed:
            if self._closing:
                raise Stopped("the engine is shutting down; retry later")
            self._queue.append(asked)
            self._changed.notify_all()
        return asked.future

    def close(self) -> None:
        """Answer the queued questions, then stop."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _run(self, least: int) -> None:
        while taken := self._take(least):
            self._answer([asked for asked in taken if asked.future.set_running_or_notify_cancel()])

    def _take(self, least: int) -> list[Asked]:
        """Wait for questions and take them from the queue; an empty list means stop."""
        with self._changed:
            self._changed.wait_for(lambda: self._closing or len(self._queue) >= least)
            return [self._queue.popleft() for _ in range(min(len(self._queue), _TOGETHER))]

    def _answer(self, asked: list[Asked]) -> None:
        try:
            with self._state.lock.read():
                answers = recommend(self._state, [one.question for one in asked], self._exposure)
        except Exception as error:
            if len(asked) == 1:
                asked[0].future.set_exception(error)
                return
            for one in asked:  # one bad question must not fail the others
                self._answer([one])
            return
        for one, answer in zip(asked, answers, strict=True):
            one.future.set_result(answer)
