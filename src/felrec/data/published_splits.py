"""Splits by name: our own, and those of published benchmarks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from felrec.data.events import Events
from felrec.data.log import InteractionLog
from felrec.data.split import Split, split_log
from felrec.errors import ConfigError, DataError

SplitName = Literal["last-events", "tgb", "time-to-split"]
_FEWEST_EVENTS = 5  # of each user and each item that Time-to-Split keeps


def split_by(name: SplitName, log: InteractionLog) -> Split:
    """Split a log as `name` says.

    >>> import polars as pl
    >>> frame = pl.DataFrame({"user": [1, 2] * 10, "item": [3, 4] * 10, "timestamp": range(20)})
    >>> parts = split_by("tgb", InteractionLog.from_frame(frame))
    >>> len(parts.train), len(parts.validation), len(parts.test)
    (14, 3, 3)
    """
    if name not in _SPLITS:
        raise ConfigError(f"split={name!r}: choose one of {', '.join(_SPLITS)}")
    return _SPLITS[name](log)


def _tgb(log: InteractionLog) -> Split:
    """Link prediction of the Temporal Graph Benchmark: cuts at the 70 % and 85 % quantiles of the times."""
    return _at_times(log, *np.quantile(log.times, [0.70, 0.85]))


def _time_to_split(log: InteractionLog) -> Split:
    """The global temporal split of Time-to-Split: cuts at the 90 % quantile of the times, and of the times before it.

    Before that, an event that repeats its user's last item is dropped, and so are users and items with fewer than five
    events, until none is left.
    """
    log = _five_core(log)
    last = np.quantile(log.times, 0.9)
    return _at_times(log, np.quantile(log.times[log.times <= last], 0.9), last)


def _at_times(log: InteractionLog, first: float, second: float) -> Split:
    """Cut after the last event of each of two times."""
    train_end, validation_end = (int(end) for end in np.searchsorted(log.times, [first, second], side="right"))
    parts = train_end, validation_end - train_end, len(log) - validation_end
    if min(parts) < 1:
        raise DataError(
            f"{len(log):,} events, many of the same time, give {parts[0]:,} to train, {parts[1]:,} to validate and"
            f" {parts[2]:,} to test; use --split last-events"
        )
    return Split(log, train_end, validation_end)


def _five_core(log: InteractionLog) -> InteractionLog:
    events, before = _without_repeats(log.events), -1
    while before != len(events):
        before = len(events)
        for rows in ("users", "items"):
            of_event = getattr(events, rows)
            events = events[np.flatnonzero(np.bincount(of_event)[of_event] >= _FEWEST_EVENTS)]
        events = _without_repeats(events)
    if not len(events):
        raise DataError(
            f"no users and items with at least {_FEWEST_EVENTS} events each, which --split time-to-split keeps;"
            " use another split"
        )
    return log.only(events)


def _without_repeats(events: Events) -> Events:
    """Without the events whose user's previous event has the same item."""
    order = np.argsort(events.users, kind="stable")
    users, items = events.users[order], events.items[order]
    repeated = np.zeros(len(order), dtype=bool)
    repeated[order[1:]] = (users[1:] == users[:-1]) & (items[1:] == items[:-1])
    return events[np.flatnonzero(~repeated)]


_SPLITS: dict[SplitName, Callable[[InteractionLog], Split]] = {
    "last-events": split_log,
    "tgb": _tgb,
    "time-to-split": _time_to_split,
}
