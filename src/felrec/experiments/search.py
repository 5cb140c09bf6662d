"""Learning-rate search on validation, the same small grid for every trained model."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from felrec.comparison.progress import ProgressReporter
from felrec.comparison.stopwatch import read_cost
from felrec.comparison.trials import Trial, train_trial
from felrec.data.split import Split
from felrec.errors import TrainingError
from felrec.files import remove_folder, write_atomically
from felrec.training.checkpoint import RunDirectory

RATES = (0.1, 0.01, 0.001, 0.0001)  # the paper's grid and one lower rate, which SGD needs on small logs
SHARE = 0.1  # of the budget, for each rate


def search_rate(
    trial: Trial,
    split: Split,
    folder: Path,
    reporter: ProgressReporter,
    device: str,
) -> dict[str, Any]:
    """Train with each rate and return the results by rate; results are kept on disk, the runs are removed."""
    file = folder / "search.json"
    tried: dict[str, dict[str, Any]] = json.loads(file.read_text()) if file.exists() else {}
    for rate in RATES:
        if f"{rate:g}" not in tried:
            tried[f"{rate:g}"] = _try(trial, rate, split, folder / f"search-{rate:g}", reporter, device)
            folder.mkdir(parents=True, exist_ok=True)
            write_atomically(file, json.dumps(tried, indent=2) + "\n")
    return tried


def best_rate(tried: dict[str, dict[str, Any]], model: str) -> float:
    """The rate with the best validation rank.

    >>> best_rate({"0.1": {"diverged": "…"}, "0.01": {"rank": 0.2}, "0.001": {"rank": 0.3}}, "felrec-q")
    0.01
    """
    ranks = {rate: result["rank"] for rate, result in tried.items() if "rank" in result}
    if not ranks:
        raise TrainingError(f"{model}: training diverged at every learning rate ({', '.join(tried)}); set a lower lr")
    return float(min(ranks, key=ranks.__getitem__))


def at_the_edge(searches: Iterable[tuple[str, dict[str, dict[str, Any]]]]) -> list[str]:
    """The names whose best rate is the lowest or the highest of their search.

    >>> at_the_edge([("sasrec", {"0.1": {"rank": 0.3}, "0.01": {"rank": 0.2}, "0.001": {"rank": 0.1}})])
    ['sasrec']
    """
    ends = ((name, tried, sorted(map(float, tried))) for name, tried in searches)
    return [name for name, tried, rates in ends if best_rate(tried, name) in (rates[0], rates[-1])]


def _try(
    trial: Trial, rate: float, split: Split, folder: Path, reporter: ProgressReporter, device: str
) -> dict[str, Any]:
    attempt = Trial(f"{trial.name} with lr {rate:g}", trial.model, {**trial.settings, "lr": rate})
    try:
        train_trial(attempt, split, folder, reporter, device=device, resume=True)
        result: dict[str, Any] = dict(RunDirectory.open(folder).manifest["best"]["metrics"])
    except TrainingError as error:
        result = {"diverged": str(error)}
    cost = read_cost(folder)
    remove_folder(folder)
    return {**result, "cpu_seconds": cost["train_seconds"] + cost["validation_seconds"]}
