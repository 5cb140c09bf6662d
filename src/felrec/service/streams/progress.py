"""What a consumer has done, as a log line every half minute."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from felrec.service.http.logs import note

EVERY = 30.0  # seconds


class Progress:
    """Counts what became of messages."""

    def __init__(self, stream: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream, self._clock = stream, clock
        self._total = Counter(events=0, rejected=0, left_out=0, repeated=0)
        self._reported, self._events_then = clock(), 0

    def count(self, *, events: int, rejected: int, left_out: int, repeated: int) -> None:
        """Count the messages of one read: events that were appended, bad ones, ignored kinds, and repeated ones."""
        self._total.update(events=events, rejected=rejected, left_out=left_out, repeated=repeated)

    @property
    def is_due(self) -> bool:
        """Whether the last line is old enough for another one."""
        return self._clock() - self._reported >= EVERY

    def report(self, lag: int | None, inbox: int | None) -> None:
        """Log the totals, the rate since the last line, and how much there is still to do."""
        now = self._clock()
        rate = (self._total["events"] - self._events_then) / max(1e-9, now - self._reported)
        self._reported, self._events_then = now, self._total["events"]
        left = {name: value for name, value in (("lag", lag), ("inbox", inbox)) if value is not None}
        fields: dict[str, Any] = {**self._total, "events_per_second": round(rate, 1), **left}
        note("consumed", stream=self._stream, **fields)
