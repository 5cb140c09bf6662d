"""Sends what this process counted of impressions and clicks to the process that writes."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from concurrent.futures import Future, wait

from felrec.errors import FelrecError
from felrec.service.engine.click_counts import Counted
from felrec.service.engine.feedback import HAND_IN, Feedback

_log = logging.getLogger(__name__)


class HandingIn:
    """One at a time is under way. If it gets no answer it is sent again: the writer knows what it has added."""

    def __init__(self, feedback: Feedback, write: Callable[[Counted, bool], Future[None]]) -> None:
        """`write` sends counts; if its second argument is true, its future need not wait until they are added."""
        self._feedback, self._write = feedback, write
        self._last: Future[None] | None = None
        self._due = time.monotonic() + HAND_IN

    def step_if_due(self) -> None:
        """Send what there is, if it is time to."""
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + HAND_IN
            self._hand_in(durable=False)

    def finish(self, seconds: float) -> None:
        """Send the rest; waits for so long for the answer to what is under way."""
        if self._last:
            wait([self._last], seconds)
        self._hand_in(durable=True)

    def _hand_in(self, durable: bool) -> None:
        if (self._last is None or self._last.done()) and (counted := self._feedback.take()):
            try:
                self._last = self._write(counted, durable)
            except FelrecError as error:
                _log.warning("impressions and clicks could not be sent to the process that writes: %s", error)
