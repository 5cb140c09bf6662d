"""Rank and top-10 metrics over a whole catalogue: felrec counts, the authors' code sorts.

python benchmarks/ranking.py CHECKOUT
"""

from __future__ import annotations

import argparse

import numpy as np
import torch
from figures import Figure, parse, parser_of, report
from machine import peak_bandwidth
from reference import Authors
from timing import race

from felrec.evaluation.metrics import event_metrics, ranks

GOAL = 10.0


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--users", type=int, default=1024)
    parser.add_argument("--items", type=int, default=60_000)
    arguments = parse(parser)
    report([measure(arguments)], arguments.json)


def measure(arguments: argparse.Namespace) -> Figure:
    generator = torch.Generator().manual_seed(0)
    scores = torch.rand(arguments.users, arguments.items, generator=generator)
    targets = torch.randint(arguments.items, (arguments.users,), generator=generator)
    nobody_missed = np.zeros(arguments.users, dtype=bool)
    authors = Authors.load(arguments.checkout) if arguments.checkout else None

    def our_lap(_: int) -> int:
        rank, ranked = ranks(scores, targets)
        event_metrics(rank, ranked, rank, nobody_missed)
        return len(scores)

    def their_lap(_: int) -> int:
        assert authors is not None
        authors.rank_and_hits(scores, targets)
        return len(scores)

    timings = race(our_lap, their_lap if authors else None, arguments.laps)
    bytes_per_user = scores.element_size() * arguments.items
    return Figure.of_race(
        "ranking",
        timings,
        unit="users/s",
        at_least=GOAL,
        share_of_peak=timings.ours_rate * bytes_per_user / (peak_bandwidth() / 2),  # reading only: half of a copy
        notes={"peak": "one read of all scores, at half the bandwidth of a copy"},
    )


if __name__ == "__main__":
    main()
