"""One recommendation in the engine, without HTTP: compiled kernels against scoring all items, in turns in one process.

    python benchmarks/answers.py [--only bundled trained million worst] [--work DIR] [--quick]

CPU time on one thread, so that other load on the machine disturbs little. Both sides get the same questions, for users
drawn from the events of a synthetic log, and their answers are compared.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path

import numpy as np
import torch
from ingested_world import Ingested, ingested
from machine import describe
from service_world import World, contents, make_run

from felrec import runs
from felrec.answers.types import BestItems
from felrec.fitted import FittedModel
from felrec.item_score_cache import ItemScoreCache
from felrec.service.engine.clock import SteadyClock
from felrec.service.engine.engine import Engine
from felrec.service.engine.limits import Limits
from felrec.service.engine.ranking import recommend
from felrec.service.engine.types import Question
from felrec.store.protocol import Contents
from felrec.store.sqlite import SqliteStore

TOGETHER = 16  # questions of a full batch
TURNS = 5


class ScoringAll(ItemScoreCache):
    """Without the kernels."""

    prunes = False


class Race:
    """An engine that answers with and without the kernels."""

    def __init__(self, folder: Path, model: FittedModel, filled: Contents, users: list[str]) -> None:
        self.engine = Engine.of(SqliteStore(folder / "store.sqlite"), model, filled, Limits(), SteadyClock())
        self.state, self.users = self.engine._state, users
        self.scorers = {"all": ScoringAll(model.recommender), "kernels": ItemScoreCache(model.recommender)}

    def ask(self, side: str, users: list[str]) -> list[BestItems]:
        """Answer questions of several users at once."""
        self.state.scorer = self.scorers[side]
        with self.state.lock.read():
            return recommend(self.state, [Question(user) for user in users], self.engine._exposure)

    def microseconds(self, side: str, together: int, answers: int) -> float:
        """CPU time of an answer."""
        self.ask(side, self.users[:together])
        began = time.process_time()
        for first in range(0, answers, together):
            self.ask(side, self.users[first : first + together])
        return 1e6 * (time.process_time() - began) / answers

    def line(self, label: str, answers: int) -> str:
        """A line of the table."""
        cells = [label]
        for together in (1, TOGETHER):
            turns = [[self.microseconds(side, together, answers) for side in self.scorers] for _ in range(TURNS)]
            old, new = np.median(turns, axis=0)
            cells.append(f"{old:,.0f} → {new:,.0f} µs ({np.median([a / b for a, b in turns]):.1f}×)")
        scored = [self.scored(user) for user in self.users[:200]]
        cells.append(f"{np.median(scored):,.0f}, at most {max(scored):,}, of {len(self.state.items):,}")
        same = [self.ids("all", user) == self.ids("kernels", user) for user in self.users[:answers]]
        return "| " + " | ".join([*cells, f"{sum(same)} of {len(same)}"]) + " |"

    def ids(self, side: str, user: str) -> list[str]:
        """The items of an answer."""
        return [item.id for item in self.ask(side, [user])[0].items]

    def scored(self, user: str) -> int:
        """The number of items that the kernels score for a user."""
        before = self.engine._exposure.work.items_scored
        self.ask("kernels", [user])
        return self.engine._exposure.work.items_scored - before


def of_world(world: Ingested, random: np.random.Generator) -> tuple[FittedModel, Contents, list[str]]:
    users = [world.user(row) for row in random.choice(world.log.users, 512).tolist()]
    return world.model, world.contents(), users


def worst(work: Path, quick: bool, random: np.random.Generator) -> tuple[FittedModel, Contents, list[str]]:
    model = runs.load(make_run(work / "run-default", {}, "felrec-s"))
    world = World(1_000, 500, 64) if quick else World(100_000, 50_000, 64)
    return model, contents(model, world), [world.user(row) for row in random.integers(world.users, size=512).tolist()]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parts = ("bundled", "trained", "million", "worst")
    parser.add_argument("--only", nargs="+", choices=parts, default=parts, metavar="PART")
    parser.add_argument("--work", type=Path, help="folder of runs and states, for reuse")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, only to check that everything runs")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    sizes = (20_000, 2_000, 1_000) if arguments.quick else (600_000, 100_000, 50_000)
    random = np.random.default_rng(0)
    with tempfile.TemporaryDirectory(prefix="felrec-answers-") as temporary:
        work = arguments.work or Path(temporary)
        work.mkdir(parents=True, exist_ok=True)
        made: dict[str, Callable[[], tuple[FittedModel, Contents, list[str]]]] = {
            "bundled": lambda: of_world(ingested(work, "bundled", *sizes), random),
            "trained": lambda: of_world(ingested(work, "trained", *sizes), random),
            "million": lambda: of_world(
                ingested(work, "bundled", *sizes).with_copies(5_000 if arguments.quick else 1_000_000), random
            ),
            "worst": lambda: worst(work, arguments.quick, random),
        }
        print("| | one at a time | of sixteen | items scored | the same answer |\n|---|---|---|---|---|")
        for part in arguments.only:
            with tempfile.TemporaryDirectory() as folder:
                race = Race(Path(folder), *made[part]())
                print(race.line(part, 32 if part == "million" else 128), flush=True)
                race.engine.close()
    machine = describe()
    print(f"\n{date.today()}, {machine['cpu']}, torch {machine['torch']}{', QUICK' if arguments.quick else ''}")


if __name__ == "__main__":
    main()
