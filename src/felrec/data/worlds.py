"""Synthetic logs of different kinds of platform, to train on all of them together."""

from __future__ import annotations

from typing import Any

import numpy as np

from felrec.data.lazy_polars import pl
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
_USERS = {"films": 0.02, "groceries": 0.1, "drugstore": 0.1, "supermarket": 0.01}  # per event; else 0.02 to 0.3
_ITEMS = {"groceries": 0.3, "drugstore": 0.3, "supermarket": 0.3}  # per event, at most; else 0.01 to 0.1
_ONCE = {"films", "news", "listings"}  # kinds in which no user has an item twice
_PASSING = 0.05  # share of events whose item nobody else takes, at most
_OFTEN, _TIMES = 0.05, 40  # share of these items that their user takes many times, and how many
_MOST = 0.97  # upper limit of a share


def synthetic_worlds(count: int, events: int, seed: int = 0) -> list[InteractionLog]:
    """Logs of at most `events` each, cycling through all kinds; parameters vary within a kind.

    >>> [len(log) <= 500 for log in synthetic_worlds(3, 500)]
    [True, True, True]
    """
    rng = np.random.default_rng(seed)
    kinds = list(_KINDS.items())
    return [_world(rng, events, seed + number, *kinds[number % len(kinds)]) for number in range(count)]


def _world(rng: np.random.Generator, events: int, seed: int, kind: str, typical: dict[str, Any]) -> InteractionLog:
    users = _USERS[kind] * _factor(rng, -1, 1) if kind in _USERS else rng.uniform(0.02, 0.3)
    items = _ITEMS[kind] * _factor(rng, -2, 0) if kind in _ITEMS else rng.uniform(0.01, 0.1)
    log = synthetic_log(
        events,
        n_users=max(2, int(events * users)),
        n_items=max(50, int(events * items)),
        taste_strength=float(rng.uniform(0.5, 0.95)),
        seed=seed,
        **_varied(rng, typical),
    ).log
    frame = _with_passing_items(log, np.random.default_rng([seed, 1]))
    return InteractionLog.from_frame(
        frame.unique(["user", "item"], keep="first", maintain_order=True) if kind in _ONCE else frame
    )


def _with_passing_items(log: InteractionLog, rng: np.random.Generator) -> pl.DataFrame:
    """Some events are of items that nobody else takes, a few of them many times in a row.

    So weights learn that a single user does not make a new item popular, on any kind of platform.
    """
    passing = rng.random(len(log)) < rng.uniform(0, _PASSING)
    items = np.where(passing, len(log.item_ids) + np.arange(len(log)), log.items)
    often = passing & (rng.random(len(log)) < _OFTEN)
    rows = np.repeat(np.arange(len(log)), np.where(often, rng.integers(2, _TIMES, len(log)), 1))
    return pl.DataFrame({"user": log.users[rows], "item": items[rows], "timestamp": log.times[rows]})


def _varied(rng: np.random.Generator, typical: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a kind, each multiplied by a random factor from 0.5 to 2."""
    varied = {name: value * _factor(rng, -1, 1) for name, value in typical.items()}
    varied |= {name: min(varied[name], _MOST) for name in ("birth_share", "repeat_share")}
    return varied | {"tastes": max(2, round(varied["tastes"]))}


def _factor(rng: np.random.Generator, low: float, high: float) -> float:
    """2 to a random power between `low` and `high`."""
    return float(2 ** rng.uniform(low, high))
