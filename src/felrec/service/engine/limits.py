"""Limits of requests to the engine and of its state."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Limits of requests to an engine and of its state; what is beyond them is refused."""

    block: int = 256  # events of a micro-batch
    submission: int = 10_000  # events of one submission
    queue: int = 20_000  # events in the queue
    tasks: int = 256  # changes of items and erasures in the queue
    queue_seconds: float = math.inf  # expected waiting time in the queue; an interactive service sets it
    k: int = 1_000  # entries of an answer
    ids: int = 10_000  # candidates, or items of a session
    title_characters: int = 1_000
    tags: int = 100  # of one item
    key_characters: int = 256  # of an idempotency key
    future_seconds: float = 300.0
    rebuild_after: float = 5.0  # seconds from the last erasure to the rebuild of the state
    save_seconds: float = 10.0  # until the rows of the state that have changed are saved, or sooner, see `save_work`
    save_work: float = (
        4.0  # seconds of applying events after which they are saved: as long as a start needs to do it again
    )
    lease_seconds: float = 2.0  # of the process that writes, if several share a store: another takes over after it
    behind_seconds: float = 10.0  # a process that may be further behind is not ready
    answer_seconds: float = 10.0  # for which a write waits for the process that writes
    pending: int = 4_096  # writes of one process that wait for it
    may_lead: bool = True  # False: leave writing to other processes of a shared store
    inbox: int = 10_000  # writes of all processes that wait for it
    answer_hours: float = 24.0  # lifetime of an idempotency key
    forget_after: float = math.inf  # seconds without an event after which users and items are let go
    users: int | None = None  # in the state; None: no limit
    items: int | None = None  # with events, and as many with attributes
    memory: int | None = None  # resident bytes of the process
