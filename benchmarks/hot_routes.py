"""The HTTP side of the service: throughput, latency and CPU time per request, several versions of the code in turns.

    python benchmarks/hot_routes.py [--src NAME=PATH ...] [--rounds 3] [--seconds 5] [--only PART ...] --work DIR

Each turn starts `felrec serve` from the code in PATH (a `src` folder; default: this checkout) on a copy of the same
store, with the bundled weights and the log of ingested_world.py. The load generator shares the cores, so compare the
CPU time of the service rather than rates. Printed is the median over the turns, and the ratio to the first version.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import statistics
from collections.abc import Callable
from pathlib import Path

import numpy as np
from ingested_world import Ingested, ingested
from service_load import Result, Server, closed_loop, get, post, serving

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


def measure(server: Server, make: Make, connections: int, seconds: float) -> tuple[Result, float]:
    """The result of a load, and the CPU time of the service per request in microseconds."""
    asyncio.run(closed_loop(server.port, make, connections, seconds / 5))
    before = server.cpu_seconds()
    result = asyncio.run(closed_loop(server.port, make, connections, seconds))
    if result.good < len(result.statuses):
        print(f"  {len(result.statuses) - result.good} of {len(result.statuses)} were refused")
    return result, 1e6 * (server.cpu_seconds() - before) / max(1, result.good)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--src", metavar="NAME=PATH", action="append", default=[], help="code to measure")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--only", nargs="+", metavar="PART")
    parser.add_argument("--work", type=Path, required=True, help="folder of the filled store, for reuse")
    asked = parser.parse_args()
    codes = dict(one.split("=", 1) for one in asked.src) or {"here": str(HERE)}
    world, full = ingested(asked.work, "bundled", 600_000, 100_000, 50_000), asked.work / "store-ingested.sqlite"
    if not full.exists():
        world.fill(full)
    parts = {part: made for part, made in requests(world).items() if not asked.only or part in asked.only}
    found: dict[tuple[str, str], list[tuple[float, float, float, float]]] = {}
    for _ in range(asked.rounds):
        for name, source in codes.items():
            store = asked.work / f"hot-routes-{os.getpid()}.sqlite"
            shutil.copyfile(full, store)
            with serving(Path(PRETRAINED), store, Path(source)) as server:
                idle = server.memory()
                for part, (make, connections) in parts.items():
                    result, cpu = measure(server, make, connections, asked.seconds)
                    rate = result.good / result.seconds
                    found.setdefault((part, name), []).append((rate, result.percentile(50), result.percentile(99), cpu))
            for old in asked.work.glob(f"{store.name}*"):
                old.unlink()
            print(f"{name}: {idle:.0f} MB at the start", flush=True)
    for part in parts:
        first = statistics.median(figures[3] for figures in found[part, next(iter(codes))])
        for name in codes:
            rate, p50, p99, cpu = (statistics.median(column) for column in zip(*found[part, name], strict=True))
            print(
                f"| {part} | {name} | {rate:,.0f}/s | {p50:.1f} ms | {p99:.1f} ms | {cpu:.0f} µs | {first / cpu:.2f}× |"
            )


if __name__ == "__main__":
    main()
