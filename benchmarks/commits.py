"""What a commit costs, and a post until it is acknowledged: `python benchmarks/commits.py`.

An engine with the bundled weights ingests a made-up log, then single events and posts of 100 and 256. Set `PYTHONPATH`
to the `src` of another checkout to measure that one in the same minute.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from felrec.data.events import EventColumns
from felrec.pretrained import load_pretrained
from felrec.service.engine.engine import Engine
from felrec.store.protocol import Batch
from felrec.store.sqlite import SqliteStore

USERS, ITEMS = 20_000, 5_000
SIZES = ((1, 200), (100, 20), (256, 12))  # events of a post, and number of posts


class MeasuredStore(SqliteStore):
    """Adds up the time of commits."""

    wall = cpu = 0.0
    commits = 0

    def commit(self, batch: Batch) -> None:
        """Write a batch."""
        wall, cpu = time.perf_counter(), time.thread_time()
        super().commit(batch)
        self.wall += time.perf_counter() - wall
        self.cpu += time.thread_time() - cpu
        self.commits += 1

    def forget(self) -> None:
        """Begin anew."""
        self.wall, self.cpu, self.commits = 0.0, 0.0, 0


@dataclass
class Traffic:
    """Made-up events, one a second."""

    random: np.random.Generator
    moment: float = 1.5e9

    def next(self, count: int) -> EventColumns:
        """The next events."""
        users = self.random.integers(0, USERS, count).tolist()
        items = np.minimum(self.random.zipf(1.3, count), ITEMS).tolist()
        times = self.moment + np.arange(count, dtype=np.float64)
        self.moment += count
        return EventColumns([f"u{user}" for user in users], [f"i{item}" for item in items], times)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--events", type=int, default=20_000, help="ingested before anything is measured")
    parser.add_argument("--work", type=Path, help="directory for the store; default: a temporary one")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    traffic = Traffic(np.random.default_rng(0))
    with tempfile.TemporaryDirectory(dir=asked.work) as folder:
        store = MeasuredStore(Path(folder) / "store.sqlite")
        engine = Engine.open(store, load_pretrained(), empty=True)
        for start in range(0, asked.events, 10_000):
            engine.submit(traffic.next(min(10_000, asked.events - start))).result()
        for size, count in SIZES:
            store.forget()
            seconds = []
            for _ in range(count):
                events, begun = traffic.next(size), time.perf_counter()
                engine.submit(events).result()
                seconds.append(time.perf_counter() - begun)
            commit, cpu = 1e3 * store.wall / store.commits, 1e3 * store.cpu / store.commits
            middle, worst = 1e3 * float(np.median(seconds)), 1e3 * max(seconds)
            print(f"{size:4} events: commit {cpu:.2f} ms CPU, {commit:.2f} ms; post {middle:.1f} ms, worst {worst:.1f}")
        begun = time.perf_counter()
        engine.close()
        stopped = time.perf_counter()
        Engine.open(SqliteStore(Path(folder) / "store.sqlite"), load_pretrained()).close()
        print(f"stop {stopped - begun:.2f} s, start and stop {time.perf_counter() - stopped:.2f} s")


if __name__ == "__main__":
    main()
