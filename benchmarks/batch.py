"""Recommendations for all users of a run, on all cores: users a second, against asking one by one.

    python benchmarks/batch.py [LOG] [--users N]

Without a log: 300,000 events of a synthetic one with 7,500 items. The model has the bundled weights.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from datetime import date
from pathlib import Path

from machine import describe

import felrec
from felrec.batch import BatchJob

ONE_BY_ONE = 500  # users


def main() -> None:
    """Ingest the log, answer for all users into a file, then for some of them one by one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", nargs="?", type=Path)
    parser.add_argument("--users", type=int, help="only so many users")
    chosen = parser.parse_args()
    made = felrec.synthetic_log(300_000, n_users=30_000, n_items=7_500, seed=1).log
    log = felrec.read_log(chosen.log) if chosen.log else made
    model = felrec.load_pretrained()
    model.observe(log)
    users = model.user_ids.series.head(chosen.users or len(model.user_ids))
    machine = describe()
    print(f"{date.today()}, {machine['cpu']}, torch {machine['torch']}")
    print(f"{len(users):,} users, {len(model.item_ids):,} items, k = 10, seen items excluded")
    with tempfile.TemporaryDirectory() as folder:
        begun, cpu = time.perf_counter(), time.process_time()
        rows = BatchJob(model, "benchmark", users, 10, exclude_seen=True).run(Path(folder) / "recs.parquet")
        seconds, busy = time.perf_counter() - begun, time.process_time() - cpu
    rate = len(users) / seconds
    print(f"all at once: {rate:,.0f} users/s ({rows:,} rows in {seconds:.1f} s, {busy / seconds:.1f} cores busy)")
    begun = time.perf_counter()
    some = users.head(ONE_BY_ONE).to_list()
    for user in some:
        model.recommend(user, exclude_seen=True)
    alone = len(some) / (time.perf_counter() - begun)
    print(f"one by one: {alone:,.0f} users/s; all at once {rate / alone:.1f} times as many")


if __name__ == "__main__":
    main()
