"""How fast several processes are: until an item is seen elsewhere, durable events a second, reads."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from service_load import closed_loop, get

from clusters.processes import Cluster
from clusters.result import Row
from clusters.world import Place, World
from felrec import load
from felrec.data.events import EventColumns
from felrec.service.engine.cluster.member import Member


def visible(world: World, kind: str) -> Iterator[Row]:
    """From the beginning of a post to one process until another one recommends its new item."""
    posts = 50 if world.quick else 500
    cluster = Cluster(world.place(kind), world.model())
    for _ in range(2):
        cluster.start()
    writer = cluster.writer()
    reader = next(process for process in cluster.processes if process is not writer)
    for give, take in ((writer, reader), (reader, writer)):
        taken = []
        for number in range(posts):
            item = f"new {number} {give.pid}"
            begun = give.ask("post", f"u{number % 20}", item)
            taken.append(1e3 * (take.ask("recommends", f"u{number % 20}", item) - begun))
        p50, p99 = np.percentile(taken, [50, 99])
        roles = "writer to reader" if give is writer else "reader to writer"
        text = f"p50 {p50:.0f} ms, p99 {p99:.0f} ms of {posts}"
        yield Row(
            f"a post until another process recommends it, {roles}, {kind}", "p99 ≤ 100 ms", text, bool(p99 <= 100)
        )
    cluster.stop()


def durable(world: World, kind: str) -> Iterator[Row]:
    """Durable events a second of the writer in posts of 100, with the bundled weights, PostgreSQL against SQLite."""
    if kind != "postgresql":
        return
    rounds, seconds = (2, 4.0) if world.quick else (5, 15.0)
    rates = {"sqlite": list[float](), "postgresql": list[float]()}
    for _ in range(rounds):
        for store, found in rates.items():
            found.append(_durable(world.place(store), seconds))
    medians = {store: float(np.median(found)) for store, found in rates.items()}
    share = medians["postgresql"] / medians["sqlite"]
    text = f"{medians['postgresql']:,.0f} against {medians['sqlite']:,.0f} events/s: {share:.0%}"
    yield Row("durable events/s, PostgreSQL against SQLite", "≥ 70 %", text, share >= 0.7)


def _durable(place: Place, seconds: float) -> float:
    member = Member.open(place.open(), load("pretrained"), empty=True)
    rng, done = np.random.default_rng(0), 0
    while (member.health().membership or _NOBODY).role != "writer":
        time.sleep(0.01)
    begun, waiting = time.monotonic(), []
    while time.monotonic() < begun + seconds:
        users, items = rng.integers(0, 5_000, 100).tolist(), rng.zipf(1.3, 100) % 2_000
        columns = EventColumns.of([f"u{user}" for user in users], [f"i{item}" for item in items.tolist()], [None] * 100)
        waiting.append(member.submit(columns))
        if len(waiting) >= 8:
            done += waiting.pop(0).result(60).accepted
    done += sum(one.result(60).accepted for one in waiting)
    taken = time.monotonic() - begun
    member.close()
    return done / taken


class _NOBODY:
    role = "reader"


def reads(world: World, kind: str) -> Iterator[Row]:
    """Recommendations a second over HTTP of two processes against one, and what the load generator takes."""
    if kind != "sqlite":
        return
    seconds = 4.0 if world.quick else 20.0
    rates, own = {1: list[float](), 2: list[float]()}, list[float]()
    for _ in range(1 if world.quick else 3):
        for processes, found in rates.items():
            with _serving(world, processes) as port:
                before = time.process_time()
                result = asyncio.run(closed_loop(port, _question, 16, seconds))
                own.append((time.process_time() - before) / result.seconds)
                found.append(result.good / result.seconds)
    one, two = (float(np.median(rates[count])) for count in (1, 2))
    cores = os.cpu_count() or 1
    text = (
        f"{two:,.0f} against {one:,.0f}/s: {two / one:.2f}×; the generator takes {np.median(own):.2f} of {cores} cores"
    )
    yield Row("reads, 2 processes against 1", "≥ 1.7× where there are cores for it", text, _fits(two / one, cores))


def _fits(ratio: float, cores: int) -> bool | None:
    return ratio >= 1.7 if cores > 2 or ratio >= 1.7 else None


def _question(number: int) -> bytes:
    return get(f"/v1/users/u{number % 500}/recommendations?k=10")


@contextmanager
def _serving(world: World, processes: int) -> Iterator[int]:
    program = "from felrec.cli import main; main()"
    store = world.place("sqlite").address
    arguments = ["serve", str(world.run), "--store", store, "--port", "0", "--processes", str(processes)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
        cwd=Path(store).parent,
    ) as process:
        assert process.stdout is not None
        try:
            address = re.search(r":(\d+) ", process.stdout.readline())
            assert address, "the service did not start"
            time.sleep(3)  # the other process loads too
            yield int(address[1])
        finally:
            process.terminate()
            process.wait(120)
