"""Synthetic logs that differ from each other as real ones do: to learn from many kinds of platform at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from felrec.data.log import InteractionLog
from felrec.data.synthetic import synthetic_log

_KINDS: dict[str, dict[str, Any]] = {
    "films": {"tastes": 12, "birth_share": 0.4, "lifetime": 3.0, "drift": 0.5, "repeat_share": 0.0, "basket": 6.0},
    "news": {"tastes": 5, "birth_share": 0.95, "lifetime": 0.03, "drift": 1.0, "repeat_share": 0.02},
    "groceries": {"tastes": 6, "birth_share": 0.1, "lifetime": 9.0, "drift": 0.3, "repeat_share": 0.1, "basket": 8.0},
    "edits": {"tastes": 40, "birth_share": 0.3, "lifetime": 1.0, "drift": 1.5, "repeat_share": 0.9},
    "drugstore": {"tastes": 5, "birth_share": 0.2, "lifetime": 9.0, "drift": 0.5, "repeat_share": 0.05, "basket": 4.0},
    "streams": {"tastes": 15, "birth_share": 0.8, "lifetime": 0.2, "drift": 2.0, "repeat_share": 0.3},
    "supermarket": {
        "tastes": 4,
        "birth_share": 0.05,
        "lifetime": 9.0,
        "drift": 0.2,
        "repeat_share": 0.3,
        "basket": 9.0,
    },
    "listings": {"tastes": 30, "birth_share": 0.9, "lifetime": 0.1, "drift": 0.3, "repeat_share": 0.1},
}
_USERS = {"films": 0.02, "groceries": 0.1, "drugstore": 0.1, "supermarket": 0.01}  # for each event; else 0.02 to 0.3
_ITEMS = {"groceries": 0.3, "drugstore": 0.3, "supermarket": 0.3}  # for each event, at most; else 0.01 to 0.1
_ONCE = {"films", "news", "listings"}  # where nobody takes a thing twice
_MOST = 0.97  # that a share may be


def synthetic_worlds(count: int, events: int, seed: int = 0) -> list[InteractionLog]:
    """Logs of at most `events` each, of all kinds in turn; no two of a kind are alike.

    >>> [len(log) <= 500 for log in synthetic_worlds(3, 500)]
    [True, True, True]
    """
    rng = np.random.default_rng(seed)
    kinds = list(_KINDS.items())
    return [_world(rng, events, seed + number, *kinds[number % len(kinds)]) for number in range(count)]


def _world(rng: np.random.Generator, events: int, seed: int, kind: str, told: dict[str, Any]) -> InteractionLog:
    users = _USERS[kind] * _factor(rng, -1, 1) if kind in _USERS else rng.uniform(0.02, 0.3)
    items = _ITEMS[kind] * _factor(rng, -2, 0) if kind in _ITEMS else rng.uniform(0.01, 0.1)
    log = synthetic_log(
        events,
        n_users=max(2, int(events * users)),
        n_items=max(50, int(events * items)),
        taste_strength=float(rng.uniform(0.5, 0.95)),
        seed=seed,
        **_varied(rng, told),
    ).log
    if kind not in _ONCE:
        return log
    frame = pl.DataFrame({"user": log.users, "item": log.items, "timestamp": log.times})
    return InteractionLog.from_frame(frame.unique(["user", "item"], keep="first", maintain_order=True))


def _varied(rng: np.random.Generator, told: dict[str, Any]) -> dict[str, Any]:
    """The same kind, up to twice or half as much of everything."""
    varied = {name: value * _factor(rng, -1, 1) for name, value in told.items()}
    varied |= {name: min(varied[name], _MOST) for name in ("birth_share", "repeat_share")}
    return varied | {"tastes": max(2, round(varied["tastes"]))}


def _factor(rng: np.random.Generator, low: float, high: float) -> float:
    """A power of two, between those given."""
    return float(2 ** rng.uniform(low, high))
