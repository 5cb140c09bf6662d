"""How the cost of an answer and of an event grows with users and items: felrec beside `implicit` and HNSW.

    pip install implicit usearch
    python benchmarks/growth_of_cost.py --out FOLDER [--most 10000000] [--sides felrec item-kNN ALS HNSW]

CPU time on one thread, without HTTP and store, over made-up rows (made_up_rows.py). One size grows, the other one stays
10,000. Results are kept in FOLDER, and an interrupted run goes on. An answer has ten items; *of 100* is the cost of one
if 100 users are answered at once. *Add* is for felrec the first event of a new item, which the next answer reflects;
for the others it is adding an item.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from growth_of_cost_plot import draw, table
from growth_rivals import RIVALS
from machine import describe
from made_up_rows import MadeUp

from felrec.abilities import Selection
from felrec.data.events import Events
from felrec.item_score_cache import ItemScoreCache
from felrec.recommender import Queries

SIDES = ("felrec", "item-kNN", "ALS", "HNSW")
OTHER = 10_000  # users while items grow, and items while users grow
MOST = {"item-kNN": 1_000_000, "ALS": 10_000_000, "HNSW": 1_000_000, "felrec": 10_000_000}  # what is bearable to build
SECONDS = 3.0  # of one measurement, at most
TIMES = 200
TOGETHER = 100
NOTHING = np.zeros(0, dtype=np.int32)


class Felrec:
    """FELRec-S as a service uses it, after its first answer."""

    def __init__(self, made_up: MadeUp) -> None:
        self.model, self.items = made_up.model(), made_up.items
        self.cache, self.time = ItemScoreCache(self.model), 1e9
        self.answer(np.zeros(1, dtype=np.int64))

    def answer(self, users: np.typing.NDArray[np.int64]) -> None:
        """Ten items for each of some users, all at once."""
        self.cache.best(Queries.now(users, self.time), [Selection(10, NOTHING)] * len(users), self.items)

    def add(self) -> bool:
        """The first event of a new item."""
        self.time += 1
        event = Events.of(np.array([self.items % OTHER]), np.array([self.items]), np.array([self.time]))
        self.cache.apply_change(self.model.change(event))
        self.items += 1
        return True


def measured(side: str, users: int, items: int) -> dict[str, float]:
    """Milliseconds of CPU time: medians, and the worst answer while events arrive."""
    torch.set_num_threads(1)
    made_up = MadeUp(users, items)
    subject = Felrec(made_up) if side == "felrec" else RIVALS[side](made_up)
    known = made_up.random.integers(min(users, 10_000), size=(TIMES, TOGETHER))
    costs: dict[str, np.floating] = {"answer": np.median(timed(lambda nth: subject.answer(known[nth, :1])))}
    costs["of 100"] = np.median(timed(lambda nth: subject.answer(known[nth]))) / TOGETHER
    if subject.add():
        costs["add"] = np.median(timed(lambda _: subject.add()))
    if isinstance(subject, Felrec):
        after = worst_answers(subject, known[:, :1])
        costs |= {"answer p99": np.quantile(after, 0.99), "answer worst": np.max(after)}
    return {name: float(cost) for name, cost in costs.items()}


def timed(action: Callable[[int], object]) -> list[float]:
    """Milliseconds of CPU time of each call; fewer of them if they take long."""
    costs, end = list[float](), time.process_time() + SECONDS
    for nth in range(TIMES):
        began = time.process_time_ns()
        action(nth)
        costs.append((time.process_time_ns() - began) / 1e6)
        if time.process_time() > end:
            break
    return costs


def worst_answers(subject: Felrec, users: np.typing.NDArray[np.int64]) -> list[float]:
    """Answers with two events before each, so that every 32nd is the first after a new moment."""
    costs = []
    for one in users:
        subject.add()
        subject.add()
        began = time.process_time_ns()
        subject.answer(one)
        costs.append((time.process_time_ns() - began) / 1e6)
    return costs


def sizes_of(side: str, most: int) -> list[tuple[int, int]]:
    """Users and items, the smallest first."""
    powers = [10**power for power in range(3, 8) if 10**power <= min(most, MOST[side])]
    return [pair for size in powers for pair in dict.fromkeys([(OTHER, size), (size, OTHER)])]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder of results and the plot")
    parser.add_argument("--most", type=int, default=10_000_000, help="users and items, at most")
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=SIDES)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    kept = arguments.out / "growth-of-cost.json"
    results: dict[str, dict[str, float]] = json.loads(kept.read_text()) if kept.exists() else {}
    for side in arguments.sides:
        for users, items in sizes_of(side, arguments.most):
            name = f"{side}/{users}/{items}"
            if name not in results:
                results[name] = measured(side, users, items)
                kept.write_text(json.dumps(results, indent=1))
                print(name, {cost: round(value, 3) for cost, value in results[name].items()}, flush=True)
    print(table(results))
    draw(results, arguments.out / "growth-of-cost.png")
    print(describe()["cpu"])


if __name__ == "__main__":
    main()
