"""How much the engine takes at once."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Bounds of what is asked of an engine; beyond them it refuses instead of growing."""

    block: int = 256  # events of a micro-batch
    submission: int = 10_000  # events of one submission
    queue: int = 20_000  # events that may wait
    queue_seconds: float = math.inf  # for how long, at the pace of late; a service that people wait for sets it
    k: int = 1_000  # entries of an answer
    ids: int = 10_000  # candidates, or items of a session
    title_characters: int = 1_000
    tags: int = 100  # of one item
    key_characters: int = 256  # of an idempotency key
    future_seconds: float = 300.0
    answer_hours: float = 24.0  # for how long an idempotency key is remembered
