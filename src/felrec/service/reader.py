"""Answers together what is asked at the same time: one encoding, one product with all items."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue

from felrec.errors import Stopped
from felrec.service.bias import Exposure
from felrec.service.recommending import recommend
from felrec.service.records import Question, Recommendations
from felrec.service.replica import Replica

_TOGETHER = 16  # questions; more would make the first wait longer and gain little
_THREADS = 2  # one prepares while the other computes; more would only wait for the interpreter


@dataclass(frozen=True)
class Asked:
    """A question on its way."""

    question: Question
    future: Future[Recommendations] = field(default_factory=Future)


class Reader:
    """Threads that take what waits and never wait for more."""

    def __init__(self, replica: Replica, exposure: Exposure) -> None:
        self._replica, self._exposure = replica, exposure
        self._queue: SimpleQueue[Asked | None] = SimpleQueue()  # None: it is time to stop
        self._open, self._closing = threading.Lock(), False
        self._threads = [threading.Thread(target=self._run, name="felrec-reader", daemon=True) for _ in range(_THREADS)]
        for thread in self._threads:
            thread.start()

    def ask(self, question: Question) -> Future[Recommendations]:
        """Queue a question. Whoever cancels the future in time saves the work."""
        asked = Asked(question)
        with self._open:
            if self._closing:
                raise Stopped("the engine is closing; ask again later")
            self._queue.put(asked)
        return asked.future

    def close(self) -> None:
        """Stop after what waits."""
        with self._open:
            self._closing = True
            self._queue.put(None)
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        while (first := self._queue.get()) is not None:
            taken = [first, *self._waiting(_TOGETHER - 1)]
            self._answer([asked for asked in taken if asked.future.set_running_or_notify_cancel()])
        self._queue.put(None)  # for the other threads

    def _waiting(self, most: int) -> list[Asked]:
        taken: list[Asked] = []
        while len(taken) < most:
            try:
                following = self._queue.get_nowait()
            except Empty:
                break
            if following is None:
                self._queue.put(None)  # for the next round
                break
            taken.append(following)
        return taken

    def _answer(self, asked: list[Asked]) -> None:
        try:
            with self._replica.lock.read():
                answers = recommend(self._replica, [one.question for one in asked], self._exposure)
        except Exception as error:
            if len(asked) == 1:
                asked[0].future.set_exception(error)
                return
            for one in asked:  # what one question runs into is not the trouble of the others
                self._answer([one])
            return
        for one, answer in zip(asked, answers, strict=True):
            one.future.set_result(answer)
