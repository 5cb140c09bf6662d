"""Resident memory of training on a log of 25 million rows, 160,000 users and 60,000 items, at the paper's sizes.

    python benchmarks/memory.py [--rows 25000000] [--work DIR]

A separate process reads the log, fills the histories, takes the last steps of an epoch, validates on a few events and
writes the checkpoint. The peak is measured after reading; the peaks of reading and preparing are notes.
"""

from __future__ import annotations

import argparse

from figures import Figure, parse, parser_of, report
from logs import add_size_options, synthetic_folder
from workers import in_own_process

GOAL_GB = 4.0


def main() -> None:
    parser = parser_of(__doc__)
    add_size_options(parser)
    parser.add_argument("--steps", type=int, default=3, help="batches to train on")
    arguments = parse(parser)
    report([measure(arguments)], arguments.json)


def measure(arguments: argparse.Namespace) -> Figure:
    file = synthetic_folder(arguments.work, arguments.rows) / "ratings.parquet"
    result = in_own_process("train", file, arguments.steps, *arguments.set)
    return Figure(
        "train-memory",
        result["peak_gb"],
        "GB",
        result["peak_gb"],
        at_most=GOAL_GB,
        notes={
            "rows": f"{arguments.rows:,}",
            "GB, reading": result["reading_gb"],
            "GB, preparing": result["preparing_gb"],
        },
    )


if __name__ == "__main__":
    main()
