"""One recommendation in the engine by two versions of felrec, in turns: what the work since then has brought.

    git worktree add BEFORE COMMIT
    python benchmarks/versions.py BEFORE/src [--turns 3] [--work DIR]

Both import the same synthetic log of 600,000 events into a store of their own with the weights bundled with them. Then
they answer the same questions, one at a time, each version in a process of its own. CPU time on one thread.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path

import numpy as np
import polars as pl
from ingested_world import world_log
from machine import describe

ASKED = 300  # users
ASK = str(Path(__file__).with_name("versions_answers.py"))
EVENTS, USERS, ITEMS = 600_000, 100_000, 50_000


def run(source: Path, *program: str) -> str:
    """Run a program with one version of felrec."""
    environment = {**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, *program], env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


def write_log(path: Path) -> list[str]:
    """Write the log; returns the users to ask for, drawn from its events."""
    events = world_log(EVENTS, USERS, ITEMS).events
    users, items = [f"user-{row}" for row in events.users.tolist()], [f"item-{row}" for row in events.items.tolist()]
    pl.DataFrame({"user": users, "item": items, "time": events.times}).write_parquet(path)
    return [users[row] for row in np.random.default_rng(0).choice(len(users), ASKED).tolist()]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("before", type=Path, help="the folder src of the other version")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--work", type=Path, help="folder of the log and both stores, for reuse")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="felrec-versions-") as temporary:
        work: Path = arguments.work or Path(temporary)
        work.mkdir(parents=True, exist_ok=True)
        users = write_log(log := work / "log.parquet")
        sources = {"before": arguments.before.resolve(), "now": Path(__file__).resolve().parents[1] / "src"}
        stores = {version: work / f"{version}.sqlite" for version in sources}
        for version, source in sources.items():
            command = "from felrec.cli import main; main()"
            run(source, "-c", command, "import", str(log), "--store", str(stores[version]), "--empty")
        costs: dict[str, list[float]] = {version: [] for version in sources}
        for turn in range(arguments.turns):
            for version, source in sources.items():
                answered = run(source, ASK, str(stores[version]), *users)
                costs[version].append(float(np.median([float(lap) for lap in answered.split()])))
            print(f"turn {turn + 1}: {costs['before'][-1]:,.0f} → {costs['now'][-1]:,.0f} µs", flush=True)
    ratio = np.median([before / now for before, now in zip(costs["before"], costs["now"], strict=True)])
    print(f"{np.median(costs['before']):,.0f} → {np.median(costs['now']):,.0f} µs an answer, {ratio:.1f} times as fast")
    print(f"{date.today()}, {describe()['cpu']}")


if __name__ == "__main__":
    main()
