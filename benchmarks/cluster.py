"""Measure several processes with one store, and what they survive: prints the table of docs/scale.md.

    python benchmarks/cluster.py [--quick] [--failures N] [--only NAME,...] [--stores sqlite,postgresql] [--json FILE]
    python benchmarks/cluster.py --list

Each measurement has a store and processes of its own, is bounded in count and time, and removes what it made. A
PostgreSQL server is started for it on a port of its own, and stopped; it syncs to the disk.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from dataclasses import asdict
from datetime import date
from pathlib import Path

import torch
from clusters import failures, speed
from clusters.world import world

MEASUREMENTS = {
    "reads": speed.reads,
    "visible": speed.visible,
    "durable": speed.durable,
    "kill": failures.kill_writer,
    "restart": failures.restart_server,
    "stop": failures.stop_processes,
    "partition": failures.partition,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few seconds each")
    parser.add_argument("--failures", type=int, metavar="N", help="so many kills or restarts")
    parser.add_argument("--only", default=",".join(MEASUREMENTS))
    parser.add_argument("--stores", default="sqlite,postgresql")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--list", action="store_true")
    asked = parser.parse_args()
    if asked.list:
        print("\n".join(f"{name}: {(measure.__doc__ or '').splitlines()[0]}" for name, measure in MEASUREMENTS.items()))
        return
    torch.set_num_threads(1)
    rows = []
    print(f"{date.today()}\n\n| what | goal | measured | reached |\n|---|---|---|---|", flush=True)
    temporary = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
    with temporary as folder, world(Path(folder), asked.quick, asked.failures) as here:
        for name in asked.only.split(","):
            for kind in asked.stores.split(","):
                begun = time.monotonic()
                for row in MEASUREMENTS[name](here, kind):
                    rows.append({**asdict(row), "name": name, "store": kind, "seconds": time.monotonic() - begun})
                    reached = {True: "yes", False: "**no**", None: "not on this machine"}[row.reached]
                    print(f"| {row.what} | {row.goal} | {row.measured} | {reached} |", flush=True)
    if asked.json:
        asked.json.write_text(json.dumps(rows, indent=1))
    if any(row["reached"] is False for row in rows):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
