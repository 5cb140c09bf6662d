"""Runs the trials of experiments: each model is trained once for a log, a scale and settings."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from felrec.comparison import ProgressReporter, Silent, settings_by_model
from felrec.comparison.stopwatch import read_cost
from felrec.comparison.trials import Trial, evaluate_trial, train_trial
from felrec.errors import TrainingError
from felrec.evaluation.protocols import replay
from felrec.evaluation.report import Report
from felrec.experiments.budget import FEW_VALIDATIONS, Plan, is_trained, measure, newest, plan
from felrec.experiments.scale import Data, Scale
from felrec.experiments.search import SHARE, best_rate, search_rate
from felrec.files import write_atomically
from felrec.fitted import FittedModel
from felrec.registry import MODELS, model_kind
from felrec.runs import cache_start
from felrec.training.checkpoint import RunDirectory

ORDER = (
    *("bpr-mf", "gru4rec", "gru4rec-bptt", "sasrec", "jodie"),
    *("popularity", "decayed-popularity", "repeat", "item-knn", "felrec-q", "felrec-p", "felrec-s"),
)
PLAN = "plan.json"
_LONGEST_NAME = 120  # characters of a run's folder


@dataclass(frozen=True)
class Result:
    """A trained and evaluated trial."""

    trial: Trial
    report: Report
    run: Path
    manifest: dict[str, Any] = field(repr=False)
    plan: Plan | None  # None: the model is not trained
    search: dict[str, Any] | None
    cost: dict[str, Any]
    test_seconds: float  # of CPU


@dataclass
class ExperimentRunner:
    """Runs trials; the experiments of one command share it."""

    runs: Path
    scale: Scale = field(default_factory=Scale)
    models: tuple[str, ...] | None = None  # None: the experiment's own choice
    settings: dict[str, Any] = field(default_factory=dict)  # applied to every model that has them
    search_lr: bool = False
    device: str = "cpu"
    reporter: ProgressReporter = field(default_factory=Silent)
    results: list[Result] = field(default_factory=list, repr=False)  # all that was asked for, for the config

    def chosen(self, usual: tuple[str, ...] | None = None) -> list[str]:
        """The models to run: those requested, else `usual`, else all."""
        known = [*(name for name in ORDER if name in MODELS), *(name for name in MODELS if name not in ORDER)]
        if self.models is not None:
            for name in self.models:
                model_kind(name)
            return sorted(self.models, key=known.index)
        return [name for name in known if usual is None or name in usual]

    def trial(self, model: str, name: str | None = None, **variant: Any) -> Trial:
        """A trial of a model with the shared settings, overridden by `variant`."""
        kind = model_kind(model)
        own = settings_by_model([*self.chosen(), model], self.settings)[model]
        given = {**own, **variant}
        kind.divide(given)
        return Trial(name or model, model, given)

    def result(self, trial: Trial, on: Data, tested: Data | None = None) -> Result:
        """Train a trial on a log and test it on the same or another log; finished work is read from disk."""
        folder = self.folder(trial, on)
        planned, search = self._prepare(trial, on, folder)
        model = self._train(trial, on, folder, planned, search)
        test = tested or on
        trial = replace(trial, cache=cache_start(model, test.split, trial.cache))
        log = "" if model.fingerprint == test.split.fingerprint else test.key
        found = evaluate_trial(trial, model, test.split, folder, self.reporter, device=self.device, log=log)
        manifest = RunDirectory.open(folder).manifest
        cost = read_cost(folder)
        result = Result(trial, found.report, folder, manifest, planned, search, cost, found.cpu_seconds)
        self.results.append(result)
        return result

    def before_test(self, trial: Trial, on: Data) -> FittedModel:
        """A trained model in its state at the start of the test."""
        model, _ = self.trained(trial, on)
        if cache_start(model, on.split) == "reset":
            model.recommender.reset()
            replay(model.recommender, on.split.log[: on.split.validation_end])
        return model

    def trained(self, trial: Trial, on: Data) -> tuple[FittedModel, Plan | None]:
        """A trained model and its plan, None without gradients; finished work is read from disk."""
        folder = self.folder(trial, on)
        planned, search = self._prepare(trial, on, folder)
        return self._train(trial, on, folder, planned, search), planned

    def folder(self, trial: Trial, on: Data) -> Path:
        """The directory of a run, named after the log, the model and all settings that differ from the defaults."""
        said = dict(sorted(trial.settings.items()))
        if is_trained(model_kind(trial.model)):
            said |= self.scale.of_training() | ({"lr": "searched"} if self.search_lr else {})
        name = ",".join((trial.model, *(f"{key}={_spelled(value)}" for key, value in said.items())))
        if len(name) > _LONGEST_NAME:
            name = f"{name[:_LONGEST_NAME]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
        return self.runs / on.key / name.replace("/", "_")

    def _train(
        self, trial: Trial, on: Data, folder: Path, planned: Plan | None, search: dict[str, Any] | None
    ) -> FittedModel:
        split = on.split
        if planned:
            split = planned.cut(split)
            trial = replace(trial, settings={**trial.settings, **planned.settings()})
        if search:
            trial = replace(trial, settings={**trial.settings, "lr": best_rate(search, trial.name)})
        try:
            return train_trial(trial, split, folder, self.reporter, device=self.device, resume=True)
        except TrainingError as error:
            run = RunDirectory.open(folder)
            if "best" not in run.manifest:
                raise TrainingError(f"{trial.name}: {error}") from None
            # The best earlier epoch is the result of this trial, so that the other models still run.
            run.update({"finished": True, "diverged": str(error)})
            return train_trial(trial, split, folder, self.reporter, device=self.device, resume=True)

    def _prepare(self, trial: Trial, on: Data, folder: Path) -> tuple[Plan | None, dict[str, Any] | None]:
        """The plan and the learning-rate search of a trained model; kept on disk, so that a resumed run reuses them."""
        if not is_trained(model_kind(trial.model)):
            return None, None
        file = folder / PLAN
        if file.exists():
            told = json.loads(file.read_text())
        else:
            planned, tried = self._plans(trial, on)
            told = {"plan": planned.to_json(), "trial": tried.to_json()}
            folder.mkdir(parents=True, exist_ok=True)
            write_atomically(file, json.dumps(told, indent=2) + "\n")
        if not self.search_lr:
            return Plan.from_json(told["plan"]), None
        tried = Plan.from_json(told["trial"])
        small = newest(on.split, tried.train_events or len(on.split.train))
        trying = replace(trial, settings={**trial.settings, **tried.settings()})
        return Plan.from_json(told["plan"]), search_rate(trying, small, folder, self.reporter, self.device)

    def _plans(self, trial: Trial, on: Data) -> tuple[Plan, Plan]:
        """The plan of the run, and of each trial of the search, which gets a tenth of the budget."""
        kind, scale = model_kind(trial.model), self.scale
        given = {**trial.settings, **scale.model_dump(include={"epochs", "trained_share"}, exclude_none=True)}
        _, wanted = kind.divide(given)
        if scale.minutes is None:
            epochs = wanted.epochs
            return tuple(  # type: ignore[return-value]
                Plan(max(1, round(epochs * share)), wanted.trained_share, None, None) for share in (1, SHARE)
            )
        speed, seconds = measure(kind, given, on.split, self.device), 60 * scale.minutes
        few = min(FEW_VALIDATIONS, len(on.split.validation))
        return (
            plan(speed, on.split, seconds, wanted, whole=kind.one_log),
            plan(speed, on.split, SHARE * seconds, wanted, whole=False, validated=few),
        )


def _spelled(value: Any) -> str:
    """A setting as it stands in the name of a folder."""
    if isinstance(value, list):
        return "+".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
