"""The time as of which a question is answered."""

from __future__ import annotations

LIVE_SECONDS = 86_400.0  # events are live if the newest one is at most this old


def question_time(newest: float, now: float) -> float:
    """The time of the newest event; while events are live, the present, but never before the newest event.

    So a log of the past is asked as of its end, and gives the same answers at any time.

    >>> question_time(newest=1_000.0, now=1_060.0), question_time(newest=1_000.0, now=900_000.0)
    (1060.0, 1000.0)
    """
    return max(newest, now) if now - newest <= LIVE_SECONDS else newest
