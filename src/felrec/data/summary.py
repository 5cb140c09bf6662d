"""Summary statistics of a log."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import numpy as np

from felrec.data.events import Rows
from felrec.data.log import InteractionLog
from felrec.data.split import PARTITIONS, repeats, split_log


def inspect(log: InteractionLog) -> dict[str, Any]:
    """Sizes, span, history lengths, shares of repeats, ties, kinds and partitions of the test part; range of values.

    >>> import polars as pl
    >>> frame = pl.DataFrame({"user": [1, 2] * 10, "item": [3, 4] * 10, "timestamp": range(20)})
    >>> about = inspect(InteractionLog.from_frame(frame))
    >>> about["rows"], about["user_history"], about["repeated_pairs"]
    (20, {'median': 10.0, '90%': 10.0, 'max': 10}, 0.9)
    """
    parts = split_log(log)
    codes = parts.partition(parts.validation_end, len(log))
    shares = np.bincount(codes, minlength=len(PARTITIONS)) / len(codes)
    return {
        "rows": len(log),
        "users": log.n_users,
        "items": log.n_items,
        "first": _iso(log.times[0]),
        "last": _iso(log.times[-1]),
        "span_days": float(log.times[-1] - log.times[0]) / 86_400,
        "user_history": _lengths(log.users),
        "item_history": _lengths(log.items),
        "repeated_pairs": float(repeats(log).mean()),
        "ties": float(np.mean(log.times[1:] == log.times[:-1])),
        "test_partitions": dict(zip(PARTITIONS, shares.tolist(), strict=True)),
        "kinds": None if log.kinds is None else {"column": log.kinds.column, "shares": _shares(log.kinds.counts)},
        "values": None if log.values is None else asdict(log.values),
        "worth": _worth(log),
    }


def _worth(log: InteractionLog) -> dict[str, float] | None:
    """The shares of events that count, are context, or speak against their item; None if all count alike."""
    weights = log.events.weights
    if weights is None:
        return None
    context, against = float((weights == 0).mean()), float((weights < 0).mean())
    return {"count": 1 - context - against, "context": context, "negative": against}


def _shares(counts: dict[str, int]) -> dict[str, float]:
    return {name: count / sum(counts.values()) for name, count in counts.items()}


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(float(seconds), UTC).isoformat(timespec="seconds")


def _lengths(rows: Rows) -> dict[str, float | int]:
    counts = np.bincount(rows)
    median, most = np.quantile(counts, [0.5, 0.9]).tolist()
    return {"median": median, "90%": most, "max": int(counts.max())}
