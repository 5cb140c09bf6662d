"""Train and test several models on one log and compare each with the best simple baseline."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from felrec.comparison.progress import ProgressReporter, Silent
from felrec.comparison.trials import Trial, evaluate_trial, train_trial
from felrec.config import TrainingSettings
from felrec.data.events import Rows, Times
from felrec.data.split import PARTITIONS, Split
from felrec.data.tags import ItemTags
from felrec.errors import ConfigError
from felrec.evaluation.bootstrap import Interval, paired_interval
from felrec.evaluation.metrics import Floats
from felrec.evaluation.plots import plot_partitions
from felrec.evaluation.report import Report
from felrec.model_kind import RECIPE
from felrec.registry import model_kind

JUDGED_BY = ("hr@10", "mrr")
ENOUGH = 500  # fewest test events of a partition that is compared separately


@dataclass(frozen=True)
class Difference:
    """A model's metric minus that of the best simple baseline, over the same test events."""

    model: str
    metric: str
    baseline: str
    interval: Interval
    partition: str = "total"

    def to_json(self) -> dict[str, Any]:
        """Return a dictionary of plain values."""
        names = {"model": self.model, "partition": self.partition, "metric": self.metric, "baseline": self.baseline}
        return {**names, **self.interval._asdict(), "verdict": self.interval.verdict}


@dataclass(frozen=True)
class Comparison:
    """The reports, in the order of the models given, and their differences."""

    reports: list[Report]
    differences: list[Difference]
    fingerprint: str  # of the log
    test_times: Times

    def to_json(self) -> dict[str, Any]:
        """Return the content of `comparison.json`."""
        return {
            "log": self.fingerprint,
            "models": {report.model: report.to_json() for report in self.reports},
            "differences": [difference.to_json() for difference in self.differences],
        }


def read_names(text: str) -> list[str]:
    """Parse distinct model names separated by commas.

    >>> read_names("felrec-q, popularity")
    ['felrec-q', 'popularity']
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names or len(set(names)) < len(names):
        raise ConfigError(f"--models {text}: give each model once, separated by commas")
    return names


def settings_by_model(models: Sequence[str], given: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Assign each setting to every model that has it; a setting that no model has is an error."""
    kinds = [model_kind(name) for name in models]
    fields = {kind.name: {*kind.settings.model_fields, *TrainingSettings.model_fields} for kind in kinds}
    for kind in kinds:
        fields[kind.name] |= {RECIPE} if kind.recipes else set()
    for key in given:
        if not any(key in known for known in fields.values()):
            every = sorted(set().union(*fields.values()))
            raise ConfigError(f"none of {', '.join(models)} has a setting '{key}'; they have: {', '.join(every)}")
    divided = {name: {key: given[key] for key in given if key in known} for name, known in fields.items()}
    for kind in kinds:
        kind.divide(divided[kind.name])
    return divided


def compare(
    split: Split,
    models: Sequence[str],
    out: Path,
    settings: dict[str, Any] | None = None,
    *,
    k: Sequence[int] = (),
    tags: ItemTags | None = None,
    device: str = "cpu",
    resume: bool = False,
    reporter: ProgressReporter | None = None,
) -> Comparison:
    """Train each model into `out/NAME` and test it. With `resume`, finished work is not repeated.

    `k` and `tags` are those of `felrec.evaluate`.
    """
    reporter = reporter or Silent()
    reports = []
    for name, own in settings_by_model(models, settings or {}).items():
        trial, folder = Trial(name, name, own, k=tuple(k), tags=tags), out / name
        model = train_trial(trial, split, folder, reporter, device=device, resume=resume)
        reports.append(evaluate_trial(trial, model, split, folder, reporter, device=device).report)
    found = differences(reports, split.test.users)
    return Comparison(reports, found, split.log.fingerprint, split.test.times)


def differences(reports: Sequence[Report], users: Rows) -> list[Difference]:
    """Compare every model with the best simple baseline (a model without parameters), for each metric.

    First over all events, then over each partition with enough events. `users` are the users of the events.
    """
    simple = [report for report in reports if report.parameters == 0]
    if not simple:
        return []
    partition = reports[0].partition
    parts = [("total", np.ones(len(partition), dtype=bool))]
    parts += [(name, partition == code) for code, name in enumerate(PARTITIONS)]
    return [
        difference
        for name, events in parts
        if name == "total" or events.sum() >= ENOUGH
        for metric in JUDGED_BY
        for difference in _differences(reports, simple, users, metric, name, events)
    ]


def _differences(
    reports: Sequence[Report], simple: Sequence[Report], users: Rows, metric: str, part: str, events: NDArray[np.bool_]
) -> list[Difference]:
    of_simple = [_per_event(report, metric)[events] for report in simple]
    best = int(np.argmax([values.mean() for values in of_simple]))
    return [
        Difference(
            report.model,
            metric,
            simple[best].model,
            paired_interval(_per_event(report, metric)[events], of_simple[best], users[events]),
            part,
        )
        for report in reports
        if report is not simple[best]
    ]


def write(comparison: Comparison, out: Path) -> list[Path]:
    """Write `comparison.json` and the plot as PNG and SVG; return their paths."""
    files = [out / f"comparison.{ending}" for ending in ("json", "png", "svg")]
    files[0].write_text(json.dumps(comparison.to_json(), indent=2) + "\n")
    for file in files[1:]:
        plot_partitions(comparison.reports, file)
    return files


def _per_event(report: Report, metric: str) -> Floats:
    """A metric per event; as in `total`, an event that the model cannot represent is a miss."""
    can = np.isin(report.partition, [code for code, name in enumerate(PARTITIONS) if name in report.represents])
    return np.where(can, report.results.metrics[metric], 0.0)
