"""One event and blocks of events in the model, without a store: compiled kernels against numpy and torch.

    python benchmarks/events.py [--only all no-vectors] [--work DIR] [--quick]

Change, application and renewal of the kept item scores, in turns in one process, on the same events that follow a
synthetic log. CPU time on one thread, so that other load on the machine disturbs little. The second table says where
the time goes, the third what vectors cost.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import torch
from ingested_world import Ingested, following, ingested
from machine import describe

from felrec.abilities import Selection
from felrec.data.events import Events
from felrec.item_score_cache import ItemScoreCache
from felrec.model.compiled_events import CompiledChange
from felrec.model.felrec_s import FELRecS
from felrec.model.felrec_s_settings import FELRecSSettings
from felrec.model.signals.signal_set import SignalName
from felrec.recommender import Queries

SIZES = {1: 64, 8: 16, 100: 4, 256: 2}  # events of a block, and blocks of a turn
TURNS = 5
NOTHING = np.zeros(0, dtype=np.int32)
Seconds = dict[str, float]


class WithoutKernels(FELRecS):
    """Numpy and torch."""

    prunes = False


class Side:
    """A model that observes, with the item scores that a service keeps."""

    def __init__(self, kind: type[FELRecS], world: Ingested, signals: list[SignalName]) -> None:
        given = world.model.recommender
        assert isinstance(given, FELRecS)
        self.model = kind(FELRecSSettings(**given.settings.model_dump() | {"signals": signals}))
        self.model.load_weights(given.weights())
        self.model.load_state({name: torch.from_numpy(rows) for name, rows in world.state.items()})
        self.model.train(False)
        self.cache, self.spent = ItemScoreCache(self.model), Seconds()

    def timed(self, step: str, call: Callable[..., Any], *given: Any) -> Any:
        """Call, and add the CPU time to that of a step."""
        began = time.process_time()
        result = call(*given)
        self.spent[step] = self.spent.get(step, 0) + time.process_time() - began
        return result

    def observe(self, block: Events) -> float:
        """Apply a block as the engine does; returns the CPU seconds."""
        self.ask(int(block.users[0]))  # item scores are kept from the first question on
        began = time.process_time()
        self.cache.apply_change(self.model.change(block))
        return time.process_time() - began

    def observe_by_steps(self, block: Events) -> None:
        """The same, each step timed."""
        self.ask(int(block.users[0]))
        signals, kept = self.model.signals, (self.cache._current(), self.cache._current_ranking())
        if self.model.prunes:
            change = self.timed("all of the change", self.model.change, block)
            assert isinstance(change, CompiledChange)
            self.timed("of it: vectors", self._encode_again, change)
        else:
            view, change = self.timed("histories", signals.recent.block, block), {}
            for signal in signals:
                change |= self.timed(_step(signal), signal.change, view)
        self.timed("applying", self.model.apply_change, change)
        self.timed("item scores", self.cache._renew, *kept, change)

    def _encode_again(self, change: CompiledChange) -> None:
        events = self.model._compiled_events
        events._encode(events._state.current(), change.made)

    def ask(self, user: int) -> None:
        """Ask for ten items, if no item scores are kept."""
        if self.cache._current() is None and self.cache._current_ranking() is None:
            self.answer(user)

    def answer(self, user: int) -> None:
        """Ask for ten items."""
        asked = Queries.now(np.array([user]), 1e10)
        self.cache.best(asked, [Selection(10, NOTHING)], self.model.signals.recent.items.owners)

    def answer_microseconds(self, users: list[int]) -> float:
        """CPU time of an answer."""
        self.answer(users[0])
        seconds = []
        for user in users:
            began = time.process_time()
            self.answer(user)
            seconds.append(time.process_time() - began)
        return 1e6 * float(np.median(seconds))


def _step(signal: object) -> str:
    names = {"RecentEvents": "histories", "LogProfile": "profile", "HitRates": "hit rates"}
    return names.get(type(signal).__name__, type(signal).__name__.lower())


class Race:
    """Both sides, and the events that follow."""

    def __init__(self, world: Ingested, signals: list[SignalName], rest: Events) -> None:
        self.before, self.after = (Side(kind, world, signals) for kind in (WithoutKernels, FELRecS))
        self.rest, self.at = rest, 0

    def blocks(self, size: int, count: int) -> list[Events]:
        """The next blocks."""
        start, self.at = self.at, self.at + size * count
        assert self.at <= len(self.rest), "a longer log is needed"
        return list(self.rest[start : self.at].blocks(size))

    def line(self, label: str, size: int, count: int) -> str:
        """A line of the first table."""
        turns = []
        for _ in range(TURNS):
            blocks = self.blocks(size, count)
            turns.append([sum(map(side.observe, blocks)) / count for side in (self.before, self.after)])
        old, new = np.median(turns, axis=0)
        ratio = np.median([a / b for a, b in turns])
        cells = f"{1e3 * old:.2f} → {1e3 * new:.3f} ms ({ratio:.1f}×)", f"{1e6 * new / size:.0f} µs"
        return f"| {label} | {size} | {cells[0]} | {cells[1]} |"

    def profile(self, size: int, count: int) -> str:
        """Microseconds of a block by step."""
        blocks = self.blocks(size, count)
        parts = []
        for label, side in (("before", self.before), ("after", self.after)):
            side.spent = Seconds()
            for block in blocks:
                side.observe_by_steps(block)
            spent = ", ".join(f"{step} {1e6 * seconds / count:.0f}" for step, seconds in side.spent.items())
            parts.append(f"| {size} | {label} | {spent} |")
        return "\n".join(parts)

    def price(self, label: str) -> str:
        """What an event in a block of 1 and of 100, and an answer cost."""
        single = np.median([self.after.observe(block) for block in self.blocks(1, 64)])
        block = np.median([self.after.observe(block) for block in self.blocks(100, 8)]) / 100
        users = np.random.default_rng(0).choice(self.rest.users, 256).tolist()
        answers = self.after.answer_microseconds(users)
        return f"| {label} | {1e6 * single:.0f} µs | {1e6 * block:.0f} µs | {answers:.0f} µs |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parts = ("all", "no-vectors")
    parser.add_argument("--only", nargs="+", choices=parts, default=parts, metavar="PART")
    parser.add_argument("--work", type=Path, help="folder of states, for reuse")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, only to check that everything runs")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    sizes = (20_000, 2_000, 1_000) if arguments.quick else (600_000, 100_000, 50_000)
    with tempfile.TemporaryDirectory(prefix="felrec-events-") as temporary:
        work = arguments.work or Path(temporary)
        work.mkdir(parents=True, exist_ok=True)
        world, rest = ingested(work, "bundled", *sizes), following(20_000, *sizes)
        given = world.model.recommender
        assert isinstance(given, FELRecS)
        races = {}
        for part in arguments.only:
            signals = [name for name in given.settings.signals if part == "all" or name != "vectors"]
            races[part] = Race(world, signals, rest)
        print("| signals | events in a block | CPU time of a block | per event |\n|---|---|---|---|")
        for part, race in races.items():
            for size, count in SIZES.items():
                print(race.line(part, size, 1 if arguments.quick else count), flush=True)
        print("\n| events | | µs of a block by step |\n|---|---|---|")
        for size, count in SIZES.items():
            print(races[arguments.only[0]].profile(size, 1 if arguments.quick else count), flush=True)
        print("\n| signals | one event | of a hundred | an answer |\n|---|---|---|---|")
        for part, race in races.items():
            print(race.price(part), flush=True)
    machine = describe()
    print(f"\n{date.today()}, {machine['cpu']}, torch {machine['torch']}{', QUICK' if arguments.quick else ''}")


if __name__ == "__main__":
    main()
