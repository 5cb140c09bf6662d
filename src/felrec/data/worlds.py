"""Synthetic logs that differ from each other as real ones do: to learn from many kinds of platform at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from felrec.data.log import InteractionLog
from felrec.data.synthetic import synthetic_log

_KINDS: dict[str, dict[str, Any]] = {
    "films": {"tastes": 12, "birth_share": 0.4, "lifetime": 3.0, "drift": 0.5, "repeat_share": 0.0},
    "news": {"tastes": 5, "birth_share": 0.95, "lifetime": 0.03, "drift": 1.0, "repeat_share": 0.02},
    "shop": {"tastes": 20, "birth_share": 0.2, "lifetime": 5.0, "drift": 0.7, "repeat_share": 0.5},
    "edits": {"tastes": 40, "birth_share": 0.3, "lifetime": 1.0, "drift": 1.5, "repeat_share": 0.9},
    "streams": {"tastes": 15, "birth_share": 0.8, "lifetime": 0.2, "drift": 2.0, "repeat_share": 0.3},
    "listings": {"tastes": 30, "birth_share": 0.9, "lifetime": 0.1, "drift": 0.3, "repeat_share": 0.1},
}


def synthetic_worlds(count: int, events: int, seed: int = 0) -> list[InteractionLog]:
    """Logs of `events` each, of all kinds in turn; sizes and strength of taste are drawn anew for each.

    >>> [len(log) for log in synthetic_worlds(2, 500)]
    [500, 500]
    """
    rng = np.random.default_rng(seed)
    kinds = list(_KINDS.values())
    return [
        synthetic_log(
            events,
            n_users=max(2, int(events * rng.uniform(0.02, 0.3))),
            n_items=max(50, int(events * rng.uniform(0.01, 0.1))),
            taste_strength=float(rng.uniform(0.5, 0.95)),
            seed=seed + number,
            **kinds[number % len(kinds)],
        ).log
        for number in range(count)
    ]
