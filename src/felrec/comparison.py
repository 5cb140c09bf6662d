"""Several models on one log: trained, tested, and each set against the best simple baseline."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import polars as pl

from felrec import runs
from felrec.config import TrainingSettings, check
from felrec.data.events import Times
from felrec.data.split import PARTITIONS, Split
from felrec.errors import ConfigError
from felrec.evaluation.bootstrap import Interval, paired_interval
from felrec.evaluation.metrics import METRICS, Floats
from felrec.evaluation.plots import plot_partitions
from felrec.evaluation.protocols import EventResults
from felrec.evaluation.report import ExcludeSeen, Report
from felrec.fitted import FittedModel
from felrec.registry import model_kind
from felrec.training.trainer import Listener

JUDGED_BY = ("hr@10", "mrr")


class TrainingWatch(Listener, Protocol):
    """A listener that also hears how many events a model without gradients took in."""

    def __call__(self, events: int, /) -> None:
        """So many more events were taken in."""
        ...


class Watcher(Protocol):
    """Whoever wants to see how far the work is."""

    def training(self, model: str, run: Path) -> AbstractContextManager[TrainingWatch]:
        """Follow a training run."""
        ...

    def evaluating(self, model: str, events: int) -> AbstractContextManager[Callable[[int], None]]:
        """Follow an evaluation that will walk over so many events."""
        ...


@dataclass(frozen=True)
class Difference:
    """A model's metric minus that of the best simple baseline, over the same test events."""

    model: str
    metric: str
    baseline: str
    interval: Interval


@dataclass(frozen=True)
class Comparison:
    """The reports in the order the models were named, and how they differ."""

    reports: list[Report]
    differences: list[Difference]
    fingerprint: str  # of the log
    test_times: Times

    def to_json(self) -> dict[str, Any]:
        """Return what `comparison.json` holds."""
        return {
            "log": self.fingerprint,
            "models": {report.model: report.to_json() for report in self.reports},
            "differences": [
                {
                    "model": d.model,
                    "metric": d.metric,
                    "baseline": d.baseline,
                    **d.interval._asdict(),
                    "verdict": d.interval.verdict,
                }
                for d in self.differences
            ],
        }


def read_names(text: str) -> list[str]:
    """Names of models with commas between, each once.

    >>> read_names("felrec-q, popularity")
    ['felrec-q', 'popularity']
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names or len(set(names)) < len(names):
        raise ConfigError(f"--models {text}: name each model once, with commas between")
    return names


def settings_by_model(models: Sequence[str], given: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Give each setting to every model that has it; a setting that none of them has is an error."""
    kinds = [model_kind(name) for name in models]
    fields = {kind.name: {*kind.settings.model_fields, *TrainingSettings.model_fields} for kind in kinds}
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
    device: str = "cpu",
    resume: bool = False,
    watch: Watcher | None = None,
) -> Comparison:
    """Train each model into `out/NAME` and test it. With `resume`, what is finished is not done again."""
    watch = watch or _Unwatched()
    reports = []
    for name, own in settings_by_model(models, settings or {}).items():
        folder = out / name
        with watch.training(name, folder) as listener:
            model = runs.train(
                split, name, folder, own, device=device, resume=resume, listeners=(listener,), progress=listener
            )
        reports.append(_stored(folder, model, split) or _evaluate(folder, model, split, watch))
    return Comparison(reports, differences(reports), split.log.fingerprint, split.test.times)


def differences(reports: Sequence[Report]) -> list[Difference]:
    """Every model against the best of those without parameters, the simple baselines, metric by metric."""
    simple = [report for report in reports if report.parameters == 0]
    found = []
    for metric in JUDGED_BY if simple else ():
        best = max(simple, key=lambda report: report.metric(metric))
        found += [
            Difference(
                report.model, metric, best.model, paired_interval(_per_event(report, metric), _per_event(best, metric))
            )
            for report in reports
            if report is not best
        ]
    return found


def write(comparison: Comparison, out: Path) -> list[Path]:
    """Write `comparison.json` and the plot as PNG and SVG; their paths."""
    files = [out / f"comparison.{ending}" for ending in ("json", "png", "svg")]
    files[0].write_text(json.dumps(comparison.to_json(), indent=2) + "\n")
    for file in files[1:]:
        plot_partitions(comparison.reports, file)
    return files


def _per_event(report: Report, metric: str) -> Floats:
    """As in `total`: an event that the model cannot represent is a miss."""
    can = np.isin(report.partition, [code for code, name in enumerate(PARTITIONS) if name in report.represents])
    return np.where(can, report.results.metrics[metric], 0.0)


def _evaluate(folder: Path, model: FittedModel, split: Split, watch: Watcher) -> Report:
    start, stop = split.bounds("test")
    with watch.evaluating(model.name, stop - start) as progress:
        report = runs.evaluate(model, split, exclude_seen=_exclude_seen(folder), progress=progress)
    report.write_events(folder / "events.parquet")
    # The report comes last and whole: its presence says that both files are complete.
    temporary = folder / ".report.json.new"
    report.write_json(temporary)
    temporary.replace(folder / "report.json")
    return report


def _stored(folder: Path, model: FittedModel, split: Split) -> Report | None:
    """Return the report that an interrupted comparison left, if it is there."""
    try:
        told = json.loads((folder / "report.json").read_text())
        events = pl.read_parquet(folder / "events.parquet")
    except (OSError, ValueError, pl.exceptions.PolarsError):
        return None
    columns = {name: "normalised_rank" if name == "rank" else name for name in METRICS}
    start, stop = split.bounds("test")
    return Report(
        **{key: told[key] for key in ("model", "protocol", "cache", "exclude_seen", "seed", "parameters", "seconds")},
        represents=model.recommender.represents,
        partition=split.partition(start, stop),
        results=EventResults(
            events=events["event"].to_numpy(),
            rank=events["rank"].to_numpy(),
            candidates=events["candidates"].to_numpy(),
            first=events["first"].to_numpy(),
            item_events=events["item_events"].to_numpy(),
            metrics={name: events[column].to_numpy() for name, column in columns.items()},
        ),
    )


def _exclude_seen(folder: Path) -> ExcludeSeen:
    manifest = json.loads((folder / "manifest.json").read_text())
    return check(TrainingSettings, manifest["training"]).exclude_seen


class _Unwatched:
    """Nobody looks."""

    @contextmanager
    def training(self, model: str, run: Path) -> Iterator[TrainingWatch]:
        yield _Deaf()

    @contextmanager
    def evaluating(self, model: str, events: int) -> Iterator[Callable[[int], None]]:
        yield lambda done: None


class _Deaf:
    def __call__(self, events: int, /) -> None: ...

    def step(self, *, epoch: int, step: int, steps: int, events: int, loss: float, lr: float) -> None: ...

    def validated(self, *, epoch: int, step: int, steps: int, metrics: dict[str, float], best: bool) -> None: ...
