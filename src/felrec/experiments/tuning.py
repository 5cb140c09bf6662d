"""Random search of settings on the validation part of a log. The test part is never read."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from felrec.comparison.stopwatch import read_cost
from felrec.comparison.trials import Trial
from felrec.data.log import InteractionLog
from felrec.errors import ConfigError, TrainingError
from felrec.evaluation.report import ExcludeSeen, evaluate
from felrec.experiments.budget import newest
from felrec.experiments.runner import ExperimentRunner
from felrec.experiments.scale import Data, Scale
from felrec.experiments.space import Space, combinations
from felrec.files import remove_folder, write_atomically
from felrec.fitted import FittedModel
from felrec.registry import model_kind
from felrec.training.checkpoint import RunDirectory

By = Literal["mrr", "hr@10", "rank"]
FILE = "tuning.json"


@dataclass(frozen=True)
class Attempt:
    """Settings that were tried, and what came of them."""

    settings: dict[str, str]  # empty: nothing changed
    metrics: dict[str, float]  # on validation; empty if training diverged
    training: dict[str, Any]  # settings of the budget: epochs and trained_share
    cpu_seconds: float

    def goodness(self, by: By) -> float:
        """A value of which more is better; −inf if training diverged."""
        value = self.metrics.get(by, math.nan)
        return -math.inf if math.isnan(value) else -value if by == "rank" else value


def for_tuning(name: str, log: InteractionLog, scale: Scale) -> Data:
    """The training part of a log and the first validation events; every combination is judged by the same ones."""
    whole = Data.of(name, log, scale)
    return Data(name, newest(whole.split, whole.split.train_end), whole.events)


def tune(
    model: str, space: Space, data: Data, out: Path, runner: ExperimentRunner, *, trials: int, seed: int = 0
) -> list[Attempt]:
    """Try the settings as they are, then random combinations; finished trials are read from `out`."""
    trial = runner.trial(model)
    plan = {
        "model": model,
        "log": data.split.fingerprint,
        "settings": trial.settings,
        "try": {name: str(one) for name, one in space.items()},
        "scale": runner.scale.model_dump(),
        "seed": seed,
    }
    done = _begun(out / FILE, plan)
    drawn = combinations(space, trial.settings, model_kind(model), trials, seed)
    for number, settings in enumerate(drawn[len(done) :], start=len(done) + 1):
        tried = replace(trial, name=f"trial {number}/{len(drawn)}", settings={**trial.settings, **settings})
        done.append(_attempt(runner, tried, data, settings))
        write_atomically(out / FILE, json.dumps({**plan, "trials": [vars(one) for one in done]}, indent=2) + "\n")
    return done[:trials]


def best_of(attempts: list[Attempt], by: By) -> Attempt:
    """The best one; of equals the first."""
    best = max(attempts, key=lambda one: one.goodness(by))
    if not best.metrics:
        raise TrainingError("training diverged in every trial; try a lower lr")
    return best


def _begun(file: Path, plan: dict[str, Any]) -> list[Attempt]:
    """The trials that a search with the same plan has finished."""
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        return []
    told = json.loads(file.read_text())
    for name, value in json.loads(json.dumps(plan)).items():
        if told.get(name) != value:
            raise ConfigError(
                f"{file.parent} is a search with another {name}; repeat its command or choose another --out"
            )
    return [Attempt(**one) for one in told["trials"]]


def _attempt(runner: ExperimentRunner, trial: Trial, data: Data, settings: dict[str, str]) -> Attempt:
    folder = runner.folder(trial, data)
    try:
        model, planned = runner.trained(trial, data)
        metrics = _judged(model, data, RunDirectory.open(folder).manifest)
        training = planned.settings() if planned else {}
    except TrainingError:
        metrics, training = {}, {}
    cost = read_cost(folder)
    remove_folder(folder)
    return Attempt(settings, metrics, training, cost["train_seconds"] + cost["validation_seconds"])


def _judged(model: FittedModel, data: Data, manifest: dict[str, Any]) -> dict[str, float]:
    """The metrics on validation; of a model that was trained on the newest events, with all others applied too."""
    if model.fingerprint == data.split.fingerprint:
        return dict(manifest["best"]["metrics"])
    seen: ExcludeSeen = manifest["training"]["exclude_seen"]
    report = evaluate(
        model.recommender, data.split, model=model.name, cache="reset", exclude_seen=seen, part="validation"
    )
    return {name: report.metric(name) for name in get_args(By)}
