"""What waits for the writer: events that belong together."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from felrec.service.engine.types import IdempotencyKey, NewEvent, Receipt, Rejected


@dataclass
class Submission:
    """Events that belong together: all of them become durable, or none."""

    users: list[str]
    items: list[str]
    times: list[float]
    rejected: tuple[Rejected, ...]
    key: IdempotencyKey | None
    notes: Mapping[str, str]
    future: Future[Receipt] = field(default_factory=Future)

    def __len__(self) -> int:
        return len(self.users)

    @classmethod
    def of(
        cls,
        events: Sequence[NewEvent],
        rejected: Sequence[Rejected] = (),
        key: IdempotencyKey | None = None,
        notes: Mapping[str, str] | None = None,
    ) -> Submission:
        """Sorted by time, those without a time being of now; ties keep their order."""
        now = time.time()
        timed = [(now if event.timestamp is None else event.timestamp, event.user, event.item) for event in events]
        timed.sort(key=lambda event: event[0])
        columns = ([user for _, user, _ in timed], [item for _, _, item in timed], [moment for moment, _, _ in timed])
        submission = cls(*columns, tuple(rejected), key, notes or {})
        submission.future.set_running_or_notify_cancel()  # whoever hangs up does not undo what is on its way
        return submission
