"""The online service under load: durable events, recommendations, both together, a first event, 1M items, overload.

    python benchmarks/service.py [--only PART ...] [--minutes 5] [--seconds 30] [--work DIR] [--plot FILE] [--quick]

`felrec serve` runs in a separate process; the load comes from this one over loopback, on the same cores. The catalogue
has 50,000 items and 100,000 users, generated and written into the store directly (service_world.py). Users and items of
events are drawn uniformly, which is the worst case: few events of a micro-batch share an encoding, and all items are
equally popular. The parts `recommend-default`, `both-ingested` and `first-default` have a store into which a synthetic
log was ingested (ingested_world.py).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import torch
from ingested_world import Ingested, ingested
from machine import describe
from service_load import Connection, Make, Result, Server, ask_json, closed_loop, get, open_loop, post, serving, watch
from service_plot import draw
from service_world import PAPER, QUICK, SMALL, World, contents, fill, make_run

from felrec import runs
from felrec.pretrained import PRETRAINED
from felrec.service.engine.clock import SteadyClock
from felrec.service.engine.engine import Engine
from felrec.service.engine.limits import Limits
from felrec.store.sqlite import SqliteStore

POST = 100  # events per post
CONNECTIONS = 4
NORMAL = 0.1  # seconds within which a post is answered under normal load


@dataclass(frozen=True)
class Line:
    """One line of the table."""

    what: str
    measured: str
    goal: str
    reached: bool
    values: dict[str, Any] = field(default_factory=dict)


@dataclass
class Bench:
    """Paths, sizes, and the data for the plot."""

    work: Path
    quick: bool
    minutes: float
    seconds: float  # duration of a load
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(1))
    curves: dict[str, Any] = field(default_factory=dict)

    def world(self, history: int) -> World:
        """Users and items."""
        return World(1_000, 500, history) if self.quick else World(100_000, 50_000, history)

    def store(
        self, name: str, settings: dict[str, Any], history: int, model: str = "felrec-q"
    ) -> tuple[Path, Path, World]:
        """A run, a new copy of its filled store, and its contents."""
        sizes = {**settings, **QUICK} if self.quick and model == "felrec-q" else settings
        run, full, world = self.work / f"run-{name}", self.work / f"full-{name}-{history}", self.world(history)
        make_run(run, sizes, model)
        if not full.exists():
            print(f"filling a store: {world}", flush=True)
            fill(full, run, world)
        path = self.work / "store.sqlite"
        for old in self.work.glob("store.sqlite*"):
            old.unlink()
        shutil.copyfile(full, path)
        return run, path, world

    def posts(self, world: World, events: int) -> Callable[[int], bytes]:
        """Creates posts of this many events."""

        def make(_: int) -> bytes:
            users = self.random.integers(world.users, size=events).tolist()
            items = self.random.integers(world.items, size=events).tolist()
            return post(
                [{"user": world.user(user), "item": world.item(item)} for user, item in zip(users, items, strict=True)]
            )

        return make

    def questions(self, world: World) -> Callable[[int], bytes]:
        """Creates requests for recommendations."""
        return lambda _: get(f"/v1/users/{world.user(int(self.random.integers(world.users)))}/recommendations?k=10")


def events(bench: Bench, label: str, settings: dict[str, Any], history: int, goal: float) -> Line:
    run, path, world = bench.store(label, settings, history)
    with serving(run, path) as server:
        asyncio.run(closed_loop(server.port, bench.posts(world, POST), CONNECTIONS, bench.seconds / 10))
        result = asyncio.run(closed_loop(server.port, bench.posts(world, POST), CONNECTIONS, bench.seconds))
    rate = result.good * POST / result.seconds
    bench.curves.setdefault("rates", []).append((f"{label}, {history}", rate, goal))
    what = f"durable events/s in posts of {POST}, {label} model, {history} events a history"
    said = f"{rate:,.0f}/s (p50 of a post {result.percentile(50):.0f} ms)"
    return Line(what, said, f"≥ {goal:,.0f}", rate >= goal, {"rate": rate})


def recommend(bench: Bench) -> Line:
    run, path, world = bench.store("paper", PAPER, 64)
    result = _asked(bench, run, path, bench.questions(world))
    bench.curves["recommendations alone"] = _milliseconds(result)
    return _rate("GET recommendations alone, k=10", result, 300, 25)


def recommend_default(bench: Bench) -> Line:
    world, path = _ingested(bench)
    users = bench.random.choice(world.log.users, 10_000).tolist()

    def question(number: int) -> bytes:
        return get(f"/v1/users/{world.user(users[number % len(users)])}/recommendations?k=10")

    result = _asked(bench, Path(PRETRAINED), path, question)
    return _rate("GET recommendations alone, k=10, felrec-s with an ingested log", result, 1_500, 15)


def _ingested(bench: Bench) -> tuple[Ingested, Path]:
    """A store into which a synthetic log was ingested."""
    sizes = (20_000, 2_000, 1_000) if bench.quick else (600_000, 100_000, 50_000)
    world, path = ingested(bench.work, "bundled", *sizes), bench.work / "store-ingested.sqlite"
    if not path.exists():
        world.fill(path)
    return world, path


def _asked(bench: Bench, run: Path, store: Path, question: Callable[[int], bytes]) -> Result:
    with serving(run, store) as server:
        asyncio.run(closed_loop(server.port, question, CONNECTIONS, bench.seconds / 10))
        return asyncio.run(closed_loop(server.port, question, CONNECTIONS, bench.seconds))


def _rate(what: str, result: Result, goal: float, goal_p99: float) -> Line:
    rate, p50, p99 = result.good / result.seconds, result.percentile(50), result.percentile(99)
    measured = f"{rate:,.0f}/s, p50 {p50:.1f} ms, p99 {p99:.1f} ms"
    said, reached = f"≥ {goal:,.0f}/s, p99 ≤ {goal_p99} ms", rate >= goal and p99 <= goal_p99
    return Line(what, measured, said, reached, {"rate": rate, "p50": p50, "p99": p99})


@dataclass(frozen=True)
class Both:
    """Rates and goals of a load of posts and questions at the same time."""

    posts: float  # of one event, a second
    questions: float
    posts_p99: float  # milliseconds
    questions_p99: float


MODEST, HOME_PAGE = Both(300, 100, 100, 50), Both(500, 300, 60, 25)


def both(bench: Bench, label: str = "paper", model: str = "felrec-q") -> Line:
    run, path, world = bench.store(label, PAPER, 64, model)
    return _both(bench, run, path, bench.posts(world, 1), bench.questions(world), MODEST, model)


def both_ingested(bench: Bench) -> Line:
    world, path = _ingested(bench)
    events = bench.random.choice(len(world.log), 10_000)
    users = [world.user(row) for row in world.log.users[events].tolist()]
    items = [f"item-{row}" for row in bench.random.permutation(world.log.items[events]).tolist()]

    def posted(number: int) -> bytes:
        return post([{"user": users[number % 10_000], "item": items[number % 9_973]}])

    def question(number: int) -> bytes:
        return get(f"/v1/users/{users[-number % 10_000]}/recommendations?k=10")

    with tempfile.TemporaryDirectory(dir=bench.work) as folder:
        own = shutil.copyfile(path, Path(folder) / "store.sqlite")
        return _both(bench, Path(PRETRAINED), own, posted, question, HOME_PAGE, "felrec-s with an ingested log")


def _both(bench: Bench, run: Path, path: Path, posted: Make, question: Make, load: Both, label: str) -> Line:
    seconds = 5.0 if bench.quick else bench.minutes * 60

    async def send(server: Server) -> tuple[Result, Result, list[tuple[float, float]]]:
        await closed_loop(server.port, question, CONNECTIONS, bench.seconds / 10)
        return await asyncio.gather(
            open_loop(server.port, posted, load.posts, seconds, 32),
            open_loop(server.port, question, load.questions, seconds, 16),
            watch(server, seconds),
        )

    with serving(run, path) as server:
        posts, asked, memory = asyncio.run(send(server))
    bench.curves |= {
        "posts, both": _milliseconds(posts),
        "recommendations, both": _milliseconds(asked),
        "memory": memory,
    }
    fifth = max(1, len(memory) // 5)
    first, last = (statistics.mean(mb for _, mb in part) for part in (memory[fifth : 2 * fifth], memory[-fifth:]))
    done = posts.good / seconds, asked.good / seconds
    p99 = asked.percentile(99), posts.percentile(99)
    measured = (
        f"{done[0]:.0f} and {done[1]:.0f}/s; p99 {p99[0]:.1f} ms and {p99[1]:.1f} ms; {first:,.0f} → {last:,.0f} MB"
    )
    in_time = p99[0] <= load.questions_p99 and p99[1] <= load.posts_p99
    good = in_time and min(done[0] / load.posts, done[1] / load.questions) > 0.99 and last < 1.05 * first
    goal = f"p99 ≤ {load.questions_p99} ms of recommendations, ≤ {load.posts_p99} ms of posts, memory flat"
    values = {"recommendations_p99": p99[0], "posts_p99": p99[1], "memory_mb": [first, last], "done": done}
    rates = f"{load.posts} events/s one by one and {load.questions} recommendations/s"
    return Line(f"{rates}, {label}, {seconds / 60:.1f} min", measured, goal, good, values)


def first(bench: Bench) -> Line:
    run, path, world = bench.store("paper", PAPER, 64)
    return _first(bench, run, path, world.user, 100, "felrec-q")


def first_default(bench: Bench) -> Line:
    world, path = _ingested(bench)
    with tempfile.TemporaryDirectory(dir=bench.work) as folder:
        own = shutil.copyfile(path, Path(folder) / "store.sqlite")
        return _first(bench, Path(PRETRAINED), own, world.user, 30, "felrec-s with an ingested log")


def _first(bench: Bench, run: Path, path: Path, user: Callable[[int], str], goal: float, label: str) -> Line:
    async def measure(server: Server) -> list[float]:
        connection, taken = Connection(server.port), []
        for number in range(20 if bench.quick else 300):
            event = post([{"user": user(number), "item": f"new-{number}"}])
            question = get(f"/v1/users/{user(number + 1)}/recommendations?k=1&candidates=new-{number}")
            began = time.perf_counter()
            await connection.ask(event)
            while f'"id":"new-{number}"'.encode() not in (await connection.ask(question))[1]:
                pass
            taken.append(1e3 * (time.perf_counter() - began))
        return taken

    with serving(run, path) as server:
        taken = asyncio.run(measure(server))
    p50, worst = float(np.median(taken)), max(taken)
    measured = f"p50 {p50:.1f} ms, worst of {len(taken)} {worst:.1f} ms"
    what = f"first event of a new item until it was recommended, {label}"
    return Line(what, measured, f"≤ {goal:.0f} ms", worst <= goal, {"p50": p50, "worst": worst})


def million(bench: Bench) -> Line:
    run = make_run(bench.work / "run-paper", QUICK if bench.quick else PAPER)
    model, world = runs.load(run), World(1_000, 10_000 if bench.quick else 1_000_000, 64)
    p50s = {}
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "store.sqlite")
        engine = Engine.of(store, model, contents(model, world), Limits(), SteadyClock())
        for threads in (1, 2):
            torch.set_num_threads(threads)
            p50s[threads] = _median_ms(
                lambda: engine.recommend(world.user(int(bench.random.integers(world.users))), 10)
            )
        engine.close()
    measured = ", ".join(f"p50 {ms:.0f} ms with {threads} thread(s)" for threads, ms in p50s.items())
    what = f"exact top-10 over {world.items:,} items, in the engine"
    return Line(what, measured, "p50 ≤ 80 ms", min(p50s.values()) <= 80, {"p50": p50s})


def overload(bench: Bench) -> Line:
    run, path, world = bench.store("paper", PAPER, 64)
    flood = bench.seconds

    async def load(server: Server) -> tuple[float, Result, list[tuple[float, float]], float]:
        able = await closed_loop(server.port, bench.posts(world, POST), CONNECTIONS, bench.seconds / 3)
        rate = able.good / able.seconds
        made = [bench.posts(world, POST)(0) for _ in range(200)]  # created beforehand, because that takes a core
        posts, memory = await asyncio.gather(
            open_loop(server.port, lambda number: made[number % 200], 3 * rate, flood, 400),
            watch(server, flood, 0.25),
        )
        overtime = max(0.0, posts.seconds - flood)  # time to answer the rest after the last was sent
        return rate * POST, posts, memory, overtime + await _until_normal(server, bench.posts(world, 1))

    with serving(run, path) as server:
        able, posts, memory, recovery = asyncio.run(load(server))
        memory.append((flood, server.memory()))
    refused = posts.statuses.count(429)
    others = len(posts.statuses) - refused - posts.good
    growth = max(mb for _, mb in memory) - memory[0][1]
    bench.curves["overload"] = (posts.at, posts.statuses, memory, POST)
    measured = (
        f"{able:,.0f} events/s alone; of {len(posts.statuses):,} posts {posts.good:,} taken, {refused:,} answered 429,"
        f" {others} otherwise; memory + {growth:,.0f} MB; normal after {recovery:.1f} s"
    )
    values = {"taken": posts.good, "refused": refused, "others": others, "growth_mb": growth, "recovery": recovery}
    good = refused > 0 and others == 0 and recovery <= 5
    return Line("three times the load it can take", measured, "429s, bounded memory, normal within 5 s", good, values)


async def _until_normal(server: Server, make: Callable[[int], bytes]) -> float:
    """Seconds until the queue is empty and a post is answered at normal speed."""
    began = time.perf_counter()
    while True:
        asked = time.perf_counter()
        status, _ = await Connection(server.port).ask(make(0))
        taken = time.perf_counter() - asked
        if status == 200 and taken < NORMAL and (await ask_json(server.port, get("/v1/stats")))["queue_depth"] == 0:
            return time.perf_counter() - began
        await asyncio.sleep(0.05)


def _median_ms(work: Callable[[], object], times: int = 50) -> float:
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        taken.append(1e3 * (time.perf_counter() - began))
    return float(np.median(taken))


def _milliseconds(result: Result) -> list[float]:
    return [1e3 * taken for taken in result.latencies]


PARTS: dict[str, Callable[[Bench], Line]] = {
    "events-full": lambda bench: events(bench, "paper", PAPER, 64, 400),
    "events-20": lambda bench: events(bench, "paper", PAPER, 20, 800),
    "events-small": lambda bench: events(bench, "small", SMALL, 64, 3_000),
    "recommend": recommend,
    "recommend-default": recommend_default,
    "both": both,
    "both-default": lambda bench: both(bench, "default", "felrec-s"),
    "both-ingested": both_ingested,
    "first": first,
    "first-default": first_default,
    "million": million,
    "overload": overload,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS), metavar="PART")
    parser.add_argument("--minutes", type=float, default=5.0, help="minutes of both loads together")
    parser.add_argument("--seconds", type=float, default=30.0, help="seconds of every other load")
    parser.add_argument("--work", type=Path, help="folder of runs and filled stores, for reuse")
    parser.add_argument("--plot", type=Path, default=Path("service.png"), help="file of the plot")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to a file")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, only to check that everything runs")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="felrec-service-") as temporary:
        work = arguments.work or Path(temporary)
        work.mkdir(parents=True, exist_ok=True)
        bench = Bench(work, arguments.quick, arguments.minutes, 2.0 if arguments.quick else arguments.seconds)
        rows = {part: show(PARTS[part](bench), arguments.quick) for part in arguments.only}
    machine = describe()
    print(f"\n{date.today()}, {machine['cpu']}, torch {machine['torch']}{', QUICK' if arguments.quick else ''}")
    draw(bench.curves, arguments.plot)
    print(f"plot: {arguments.plot}")
    if arguments.json:
        found = {
            part: {"measured": row.measured, "reached": None if arguments.quick else row.reached, **row.values}
            for part, row in rows.items()
        }
        document = {"date": date.today().isoformat(), "machine": machine, "quick": arguments.quick, "figures": found}
        arguments.json.write_text(json.dumps(document, indent=2) + "\n")


def show(row: Line, quick: bool) -> Line:
    """Print a line of the table as soon as it is known; with tiny sizes goals are not judged."""
    verdict = "not compared" if quick else "reached" if row.reached else "MISSED"
    print(f"| {row.what} | {row.goal} | {row.measured} | {verdict} |", flush=True)
    return row


if __name__ == "__main__":
    main()
