"""Memory that a user, an item and an event cost while a service grows, and after a restart.

    python benchmarks/growth.py [--new 100000] [--model pretrained]

Each kind is measured in a separate process, over a file: new users with one event each, new items with one event each,
or events of 1,000 known users and items. The first 50,000 are not counted, because with them the memory that a post
needs for a moment reaches its size. The cost is the growth of resident memory per one of the others, right after
ingesting; the peak includes copies while tables grow. By default it ends at 150,000 rows, soon after tables doubled
their room (at 131,072), where room that is not used yet would show most.
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from machine import describe

from felrec import runs
from felrec.data.events import EventColumns
from felrec.service.engine.engine import Engine
from felrec.service.engine.freed_memory import give_back_memory
from felrec.store.sqlite import SqliteStore

KNOWN = 1_000  # users and items that exist before
WARM = 50_000  # new ones that are not counted
POST = 1_000  # events of a post
KINDS = ("user", "item", "event")
START = 1_700_000_000.0


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--new", type=int, default=100_000, help="new users, items and events")
    parser.add_argument("--model", type=Path, default=Path("pretrained"), help="a run, or 'pretrained'")
    parser.add_argument("--work", type=Path, help="folder for the stores (default: a temporary one)")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        kind, store = arguments.worker
        print(json.dumps(measured(kind, Path(store), arguments)))
        return
    with tempfile.TemporaryDirectory(prefix="felrec-growth-", dir=arguments.work) as folder:
        for kind in arguments.kinds:
            store = Path(folder) / f"{kind}.sqlite"
            grown = in_own_process(kind, store, arguments)
            again = in_own_process("restart", store, arguments)
            fresh = in_own_process("restart", Path(folder) / f"{kind}-new.sqlite", arguments)
            restarted = (again["resident"] - fresh["resident"]) / (WARM + arguments.new)
            print(
                f"{kind:>6}: {grown['each']:7,.0f} bytes each while growing, {grown['peak']:7,.0f} at the peak,"
                f" {restarted:7,.0f} after a restart, {grown['file']:7,.0f} in the file",
                flush=True,
            )
    print(describe()["cpu"])


def in_own_process(kind: str, store: Path, arguments: argparse.Namespace) -> dict[str, float]:
    command = [sys.executable, __file__, "--new", str(arguments.new), "--model", str(arguments.model)]
    printed = subprocess.run([*command, "--worker", kind, str(store)], check=True, stdout=subprocess.PIPE).stdout
    result: dict[str, float] = json.loads(printed)
    return result


def measured(kind: str, store: Path, arguments: argparse.Namespace) -> dict[str, float]:
    engine = Engine.open(SqliteStore(store), runs.load(arguments.model))
    if kind == "restart":
        give_back_memory()  # as a service does before it serves
        return {"resident": memory("VmRSS")}
    names = {"user": ("new", "item"), "item": ("user", "new"), "event": ("user", "item")}[kind]
    for columns in posts(0, WARM, *names):
        engine.submit(columns).result()
    before, file = memory("VmRSS"), engine.health().store_bytes
    Path("/proc/self/clear_refs").write_text("5")  # forgets the peak
    for columns in posts(WARM, WARM + arguments.new, *names):
        engine.submit(columns).result()
    gc.collect()
    grown = {"each": memory("VmRSS"), "peak": memory("VmHWM")}
    costs = {name: (value - before) / arguments.new for name, value in grown.items()}
    costs["file"] = (engine.health().store_bytes - file) / arguments.new
    engine.close()
    return costs


def posts(start: int, stop: int, user: str, item: str) -> Iterator[EventColumns]:
    """Events in posts; known ids take turns, new ones are counted on."""
    for first in range(start, stop, POST):
        numbers = range(first, min(first + POST, stop))
        users = [f"{user}-{number if user == 'new' else number % KNOWN}" for number in numbers]
        items = [f"{item}-{number if item == 'new' else number * 7 % KNOWN}" for number in numbers]
        yield EventColumns.of(users, items, [START + number for number in numbers])


def memory(name: str) -> int:
    """A line of /proc/self/status, in bytes."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(name)) * 1024


if __name__ == "__main__":
    main()
