"""What answers cost while events arrive: every 64th event is a new moment, which changes the scores of all items.

    python benchmarks/moments.py --items 39000 --events 3200

CPU time on one thread, without HTTP and store, over made-up rows (made_up_rows.py). After every fourth event comes a
question, alternately of a known user and of one without history; either kind comes first after every second moment.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence

import numpy as np
import torch
from made_up_rows import MadeUp

from felrec.abilities import Selection
from felrec.data.events import Events
from felrec.item_score_cache import ItemScoreCache
from felrec.recommender import Queries

NOTHING = np.zeros(0, dtype=np.int32)
USERS = 10_000
UNKNOWN = 20_000_000
BETWEEN, MOMENT = 4, 64  # events between two questions, and between two moments


def milliseconds(action: Callable[..., object], *given: object) -> float:
    began = time.process_time_ns()
    action(*given)
    return (time.process_time_ns() - began) / 1e6


def measured(items: int, events: int) -> dict[str, list[float]]:
    """Milliseconds of each answer and event, by kind."""
    made_up = MadeUp(USERS, items)
    model = made_up.model()
    cache, users, taken = ItemScoreCache(model), made_up.random.integers(USERS, size=events), made_up.draw(events)

    def ask(user: int, now: float) -> None:
        cache.best(Queries.now(np.array([user]), now), [Selection(10, NOTHING)], items)

    def observe(event: Events) -> None:
        cache.apply_change(model.change(event))

    costs: dict[str, list[float]] = {"known user": [], "without history": [], "event": []}
    costs["the first answer"] = [milliseconds(ask, 0, 1e9)]
    for nth in range(events):
        now = 1e9 + nth
        event = Events.of(users[nth : nth + 1], taken[nth : nth + 1], np.array([now]))
        costs["event"].append(milliseconds(observe, event))
        if nth % BETWEEN == BETWEEN - 1:
            kinds = ("known user", int(users[nth - 2])), ("without history", UNKNOWN)
            name, asked = kinds[(nth // BETWEEN + nth // MOMENT) % 2]
            costs[name].append(milliseconds(ask, asked, now))
    return costs


def line(name: str, costs: Sequence[float]) -> str:
    median, rare, worst = np.median(costs), np.quantile(costs, 0.99), max(costs)
    return f"{name}: median {median:.2f}, p99 {rare:.2f}, worst {worst:.2f} ms"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--items", type=int, default=39_000)
    parser.add_argument("--events", type=int, default=3_200)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for name, costs in measured(arguments.items, arguments.events).items():
        print(line(name, costs))


if __name__ == "__main__":
    main()
