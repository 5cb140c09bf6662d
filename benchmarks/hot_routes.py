"""The HTTP side of the service: throughput, latency and CPU time per request, several versions of the code in turns.

    python benchmarks/hot_routes.py [--src NAME=PATH ...] [--rounds 10] [--seconds 1] [--only PART ...] --work DIR

`felrec serve` runs from the code in each PATH (a `src` folder; default: this checkout), all at the same time, each on a
copy of the same store with the bundled weights and the log of ingested_world.py. They get the same load in turns of a
second. The load generator shares the cores, so compare the CPU time of the service rather than rates. Printed are the
medians over the turns, and the ratio of CPU time to the first version.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import statistics
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from ingested_world import Ingested, ingested
from service_load import Server, closed_loop, get, post, serving

from felrec.pretrained import PRETRAINED

HERE = Path(__file__).resolve().parents[1] / "src"
CONNECTIONS = 4
Make = Callable[[int], bytes]


def requests(world: Ingested) -> dict[str, tuple[Make, int]]:
    """How to make the requests of each part, and how many of them are sent at once."""
    random = np.random.default_rng(1)
    users = [world.user(row) for row in random.choice(world.log.users, 20_000).tolist()]
    items = [f"item-{row}" for row in random.choice(world.log.items, 20_000).tolist()]

    def events(number: int, count: int) -> bytes:
        rows = [(number * count + one) % 20_000 for one in range(count)]
        return post([{"user": users[row], "item": items[row - number % 97]} for row in rows])

    def session(number: int) -> bytes:
        body = json.dumps({"items": [items[(number + one) % 20_000] for one in range(5)]}).encode()
        head = "POST /v1/recommendations HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body

    return {
        "healthz": (lambda _: get("/healthz"), CONNECTIONS),
        "recommend": (lambda number: get(f"/v1/users/{users[number % 20_000]}/recommendations?k=10"), CONNECTIONS),
        "session": (session, CONNECTIONS),
        "event": (lambda number: events(number, 1), 16),
        "events": (lambda number: events(number, 100), CONNECTIONS),
    }


@dataclass(frozen=True)
class Figures:
    """What one turn showed."""

    rate: float  # per second
    p50: float  # milliseconds
    p99: float
    cpu: float  # microseconds of the service per request


def measure(server: Server, make: Make, connections: int, seconds: float) -> Figures:
    before = server.cpu_seconds()
    result = asyncio.run(closed_loop(server.port, make, connections, seconds))
    if result.good < len(result.statuses):
        print(f"  {len(result.statuses) - result.good} of {len(result.statuses)} were refused")
    cpu = 1e6 * (server.cpu_seconds() - before) / max(1, result.good)
    return Figures(result.good / result.seconds, result.percentile(50), result.percentile(99), cpu)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--src", metavar="NAME=PATH", action="append", default=[], help="code to measure")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--only", nargs="+", metavar="PART")
    parser.add_argument("--work", type=Path, required=True, help="folder of the filled store, for reuse")
    asked = parser.parse_args()
    codes = {name: Path(path) for name, path in (one.split("=", 1) for one in asked.src)} or {"here": HERE}
    world, full = ingested(asked.work, "bundled", 600_000, 100_000, 50_000), asked.work / "store-ingested.sqlite"
    if not full.exists():
        world.fill(full)
    with ExitStack() as stack:
        servers = {}
        for name, source in codes.items():
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=asked.work)))
            shutil.copyfile(full, folder / "store.sqlite")
            servers[name] = stack.enter_context(serving(Path(PRETRAINED), folder / "store.sqlite", source))
        for part, (make, connections) in requests(world).items():
            if not asked.only or part in asked.only:
                compare(part, servers, make, connections, asked.rounds, asked.seconds)


def compare(part: str, servers: dict[str, Server], make: Make, connections: int, rounds: int, seconds: float) -> None:
    """Print medians over the turns; the ratio is the median of those of each turn, so that other work cancels out."""
    turns, names = [], list(servers)
    for number in range(rounds + 1):
        first = number % len(names)  # none is always the last
        turn = {name: measure(servers[name], make, connections, seconds) for name in names[first:] + names[:first]}
        turns += [turn] if number else []  # the first turn warms up
    for name in servers:
        own = [turn[name] for turn in turns]
        ratio = statistics.median(turn[names[0]].cpu / turn[name].cpu for turn in turns)
        rate, p50, p99, cpu = (
            statistics.median(getattr(one, field) for one in own) for field in ("rate", "p50", "p99", "cpu")
        )
        figures = f"{rate:,.0f}/s | {p50:.1f} ms | {p99:.1f} ms | {cpu:.0f} µs | {ratio:.2f}×"
        print(f"| {part} | {name} | {figures} |", flush=True)


if __name__ == "__main__":
    main()
