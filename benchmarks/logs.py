"""Logs for benchmarks: histories filled in large blocks, and a synthetic log of any size. Does not import torch."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

from felrec.data.events import Rows
from felrec.data.synthetic import synthetic_log
from felrec.data.tables.histories import Histories

ROWS, USERS, ITEMS = 25_000_000, 160_000, 60_000


def fill(histories: Histories, owners: Rows, others: Rows) -> None:
    """Append all events in one call."""
    histories.append(owners, others)


def add_size_options(parser: argparse.ArgumentParser) -> None:
    """The options for the size and the folder of the synthetic log."""
    parser.add_argument("--rows", type=int, default=ROWS, help="of the synthetic log; users and items in proportion")
    parser.add_argument(
        "--work", type=Path, default=Path(tempfile.gettempdir()) / "felrec-bench", help="folder of the log"
    )


def synthetic_folder(work: Path, rows: int) -> Path:
    """A folder `ml-25m` with ratings.csv, laid out as MovieLens 25M, and ratings.parquet; created at the first call.

    Rows are sorted by user, as in MovieLens, so that sorting by time takes work.
    """
    folder = work / f"synthetic-{rows}" / "ml-25m"
    if (folder / "ratings.parquet").exists():  # written last
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    share = rows / ROWS
    log = synthetic_log(rows, n_users=max(50, round(USERS * share)), n_items=max(20, round(ITEMS * share))).log
    order = np.argsort(log.users, kind="stable")
    ratings = np.random.default_rng(0).integers(1, 11, size=rows) / 2
    columns = log.users[order] + 1, log.items[order] + 1, ratings, log.times[order].astype(np.int64)
    frame = pl.DataFrame(dict(zip(("userId", "movieId", "rating", "timestamp"), columns, strict=True)))
    frame.write_csv(folder / "ratings.csv")
    frame.write_parquet(folder / "ratings.parquet.new")
    (folder / "ratings.parquet.new").rename(folder / "ratings.parquet")
    return folder
