"""Answers questions: quick ones at once, the others in threads and in batches, with one product for all items."""

from __future__ import annotations

import threading
import time
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
_QUICK = 0.001  # seconds of CPU time that an answer may take of the thread that asks
_SHORT = 100  # items in the session and the answer of a quick question
_LEAST = 1, 2  # queue lengths that wake each thread: the second only helps under load, to leave the GIL to the writer


@dataclass(frozen=True)
class Asked:
    """A question in the queue."""

    question: Question
    future: Future[BestItems] = field(default_factory=Future)


class BatchScorer:
    """Threads that answer all queued questions together and never wait for more.

    With compiled kernels an answer takes less than passing the question to a thread and the answer back, so quick
    questions are answered by whoever asks (`answer_now`).
    """

    def __init__(self, state: ServingState, exposure: Exposure) -> None:
        self._state, self._exposure = state, exposure
        self._queue: deque[Asked] = deque()
        self._changed, self._closing = threading.Condition(), False
        self._pace = 0.0  # moving average of CPU seconds per answer, where item scores were ready
        self._threads = [
            threading.Thread(target=self._run, args=(least,), name="felrec-scorer", daemon=True) for least in _LEAST
        ]
        for thread in self._threads:
            thread.start()

    def answer_now(self, question: Question) -> BestItems | None:
        """The answer, if it needs no waiting and probably little time; else None."""
        if self._closing or self._pace > _QUICK or not _is_short(question) or not self._state.lock.try_read():
            return None
        try:
            return self._answers([question])[0] if self._is_ready() else None
        finally:
            self._state.lock.end_read()

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
                answers = self._answers([one.question for one in asked])
        except Exception as error:
            if len(asked) == 1:
                asked[0].future.set_exception(error)
                return
            for one in asked:  # one bad question must not fail the others
                self._answer([one])
            return
        for one, answer in zip(asked, answers, strict=True):
            one.future.set_result(answer)

    def _answers(self, questions: list[Question]) -> list[BestItems]:
        """Answer and take the time. The caller holds the read lock."""
        ready, began = self._is_ready(), time.thread_time()
        answers = recommend(self._state, questions, self._exposure)
        if ready:
            self._pace += 0.1 * ((time.thread_time() - began) / len(questions) - self._pace)
        return answers

    def _is_ready(self) -> bool:
        return self._state.scorer.is_ready(len(self._state.items))


def _is_short(question: Question) -> bool:
    """Whether only the size of the catalogue and of the user's history can make an answer slow."""
    filtered = question.candidates is not None or question.tags or question.all_tags or question.no_tags
    wanted = max(question.offset + question.k, len(question.session), len(question.exclude))
    return not filtered and question.per_tag is None and not question.explore and wanted <= _SHORT
