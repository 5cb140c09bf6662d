"""What a table of kinds does to FELRec-S: hits among well rated items, on the validation part of a log with ratings.

    python benchmarks/kinds.py ratings.dat [--good 7] [--epochs 2]

Every table is evaluated on the same targets: items of the validation part with a good rating. Seen items are left out.
Without --epochs it measures the bundled weights, else weights that are trained with each table on the training part.
"""

from __future__ import annotations

import argparse
from datetime import date
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import felrec
from felrec.data.log import InteractionLog
from felrec.data.split import Split, split_log
from felrec.evaluation.bootstrap import paired_interval
from felrec.evaluation.report import Report, evaluate
from felrec.recommender import Recommender

METRICS = ("hr@10", "mrr")


def tables(good: float) -> dict[str, str | None]:
    """What is measured, by name; None: all count alike."""
    bad = good - 2
    return {
        "no table": None,
        "others context": f"rating<{good:g}=context",
        "bad negative": f"rating<{bad:g}=negative",
        "bad negative, others context": f"rating<{bad:g}=negative,rating<{good:g}=context",
        "others half": f"rating<{good:g}=0.5",
        "best double, others half": f"rating>={good + 2:g}=2,rating<{good:g}=0.5",
        "others ignored": f"rating<{good:g}=ignore",
    }


def cut_like(log: InteractionLog, split: Split, targets: NDArray[np.bool_]) -> Split:
    """A log of all events, or of the targets alone, cut at the same places."""
    if len(log) == len(targets):
        return Split(log, split.train_end, split.validation_end)
    before = np.append(0, np.cumsum(targets))
    return Split(log, int(before[split.train_end]), int(before[split.validation_end]))


def model_for(split: Split, epochs: int | None, seed: int) -> Recommender:
    if epochs is None:
        return felrec.load("pretrained").recommender
    return felrec.fit(split, "felrec-s", epochs=epochs, seed=seed).recommender


def values(report: Report, start: int, targets: NDArray[np.bool_], metric: str) -> NDArray[np.float64]:
    """A metric of each target of the validation part."""
    found, wanted = report.results, int(targets[start:].sum())
    if len(found.events) == wanted:
        return found.metrics[metric]
    return found.metrics[metric][targets[found.events]]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("log", type=Path)
    parser.add_argument("--good", type=float, default=7)
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    marked = felrec.read_log(given.log, kinds=f"rating<{given.good:g}=context")
    split, targets = split_log(marked), marked.events.counts
    targets = targets[: split.validation_end]
    users = marked.users[split.train_end : split.validation_end][targets[split.train_end :]]
    weights = "bundled" if given.epochs is None else f"trained for {given.epochs} epochs, seed {given.seed}"
    print(f"{given.log.name}: {len(users):,} targets of validation, weights {weights}; {date.today()}")
    first: dict[str, NDArray[np.float64]] = {}
    for name, table in tables(given.good).items():
        cut = cut_like(felrec.read_log(given.log, kinds=table), split, marked.events.counts)
        recommender = model_for(cut, given.epochs, given.seed)
        report = evaluate(recommender, cut, model=name, cache="reset", exclude_seen="yes", part="validation")
        cells = []
        for metric in METRICS:
            found = values(report, split.train_end, targets, metric)
            interval = paired_interval(found, first.setdefault(metric, found), users)
            cells.append(f"{metric} {found.mean():.4f} ({interval.low:+.4f} to {interval.high:+.4f})")
        print(f"{name:<30} {'  '.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
