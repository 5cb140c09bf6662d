"""Memory that letting go of silent users and items frees, and what posts notice of it.

    python benchmarks/forgetting.py [--silent 150000] [--active 50000] [--shared | --database postgresql://…]

In a separate process a service gets users with one event each, a year and a half ago, then others with one event each
now. Then it lets go of the first ones while posts of ten events arrive, as `felrec serve --forget-after 400d` does.
Last, a new process opens the store. With `--shared`, and in a database, it is the writer of a store that others might
share.
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from growth import memory
from machine import describe

from felrec import runs
from felrec.data.events import EventColumns
from felrec.service.engine.cluster.member import AnyEngine, Member
from felrec.service.engine.engine import Engine
from felrec.service.engine.letting_go import LettingGo
from felrec.service.engine.limits import Limits
from felrec.store.opening import is_address, open_store

DAY = 86_400.0
NOW = 1_700_000_000.0
ITEMS = 1_000
POST, PAUSE = 10, 0.02  # events of a post, and seconds between two
LIMITS = Limits(forget_after=400 * DAY)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--silent", type=int, default=150_000, help="users with one event, a year and a half ago")
    parser.add_argument("--active", type=int, default=50_000, help="users with one event now")
    parser.add_argument("--shared", action="store_true", help="as one of several processes")
    parser.add_argument("--database", help="PostgreSQL, in the namespace forgetting, which must not exist")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        what, store = arguments.worker
        opened = open_engine(store, shared=arguments.shared or bool(arguments.database))
        print(json.dumps({"resident": memory("VmRSS")} if what == "restart" else measured(opened, arguments)))
        opened.close()
        return
    with tempfile.TemporaryDirectory(prefix="felrec-forgetting-") as folder:
        store = arguments.database or str(Path(folder) / "store.sqlite")
        grown, again = in_own_process("grow", store, arguments), in_own_process("restart", store, arguments)
    print(f"{arguments.silent:,} silent users of {arguments.silent + arguments.active:,}")
    for name in ("empty", "before", "peak", "after"):
        print(f"  resident, {name}: {grown[name] / 1e6:,.0f} MB")
    print(f"  resident, after a restart: {again['resident'] / 1e6:,.0f} MB")
    print(f"  file: {grown['file_before'] / 1e6:,.0f} MB before, {grown['file_after'] / 1e6:,.0f} MB after")
    print(f"  letting go took {grown['seconds']:.0f} s; posts meanwhile: {grown['posts']:.0f}")
    for name in ("quiet", "meanwhile"):
        shown = " / ".join(f"{grown[f'{name}_{part}']:.1f}" for part in ("p50", "p99", "worst"))
        print(f"  a post, {name}: p50 / p99 / worst {shown} ms")
    print(describe()["cpu"])


def open_engine(store: str, *, shared: bool) -> AnyEngine:
    namespace = "forgetting" if is_address(store) else None
    opened, model = open_store(store, shared=shared, namespace=namespace), runs.load(Path("pretrained"))
    if not shared:
        return Engine.open(opened, model, limits=LIMITS)
    member = Member.open(opened, model, limits=LIMITS)
    while member._term is None:
        time.sleep(0.01)
    return member


def letting_go(engine: AnyEngine) -> LettingGo:
    if isinstance(engine, Engine):
        return engine._letting_go
    assert engine._term is not None
    return engine._term.engine._letting_go


def in_own_process(what: str, store: str, arguments: argparse.Namespace) -> dict[str, float]:
    sizes = ["--silent", str(arguments.silent), "--active", str(arguments.active)]
    how = ["--database", arguments.database] if arguments.database else ["--shared"] if arguments.shared else []
    command = [sys.executable, __file__, *sizes, *how, "--worker", what, store]
    result: dict[str, float] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return result


def measured(engine: AnyEngine, arguments: argparse.Namespace) -> dict[str, float]:
    found: dict[str, float] = {"empty": memory("VmRSS")}
    for columns in posts("silent", arguments.silent, NOW - 550 * DAY, 1_000):
        engine.submit(columns).result()
    for columns in posts("active", arguments.active, NOW, 1_000):
        engine.submit(columns).result()
    found |= timed("quiet", engine, lambda seconds: seconds > 10)
    gc.collect()
    found |= {"before": memory("VmRSS"), "file_before": engine.health().store_bytes}
    Path("/proc/self/clear_refs").write_text("5")  # forgets the peak
    begun = time.perf_counter()
    letting_go(engine).due = time.monotonic()  # not after a minute
    found |= timed("meanwhile", engine, lambda seconds: engine._state.generation > 0 or seconds > 600)
    found["seconds"] = time.perf_counter() - begun
    time.sleep(1)
    gc.collect()
    return found | {"after": memory("VmRSS"), "peak": memory("VmHWM"), "file_after": engine.health().store_bytes}


def timed(name: str, engine: AnyEngine, done: Callable[[float], bool]) -> dict[str, float]:
    """Milliseconds of posts by known users until it is done."""
    taken, begun = list[float](), time.perf_counter()
    while not done(time.perf_counter() - begun):
        columns = next(posts("active", POST, NOW + len(taken), POST))
        before = time.perf_counter()
        engine.submit(columns).result()
        taken.append(1_000 * (time.perf_counter() - before))
        time.sleep(PAUSE)
    p50, p99 = np.percentile(taken, [50, 99]).tolist()
    return {f"{name}_p50": p50, f"{name}_p99": p99, f"{name}_worst": max(taken), "posts": len(taken)}


def posts(kind: str, users: int, start: float, size: int) -> Iterator[EventColumns]:
    """One event of each user."""
    for first in range(0, users, size):
        numbers = range(first, min(first + size, users))
        items = [f"item-{number * 7 % ITEMS}" for number in numbers]
        yield EventColumns.of([f"{kind}-{n}" for n in numbers], items, [start + n / 1_000 for n in numbers])


if __name__ == "__main__":
    main()
