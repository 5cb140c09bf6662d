"""A trial, one row of a table: a model trained with given settings and tested in a given way, each once."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from felrec import runs
from felrec.comparison.progress import ProgressReporter
from felrec.comparison.stopwatch import timed
from felrec.config import TrainingSettings, check
from felrec.data.lazy_polars import pl
from felrec.data.split import Split
from felrec.data.tags import ItemTags
from felrec.evaluation.metrics import AT_K, METRICS
from felrec.evaluation.protocols import EventResults
from felrec.evaluation.report import CacheStart, ExcludeSeen, Report, events_to_walk
from felrec.evaluation.rules import BLOCK, Protocol
from felrec.files import write_atomically
from felrec.fitted import FittedModel


@dataclass(frozen=True)
class Trial:
    """The name of a trial, how its model is trained, and how it is tested."""

    name: str
    model: str
    settings: dict[str, Any] = field(default_factory=dict)  # of the model and its training
    scoring: dict[str, Any] = field(default_factory=dict)  # settings changed after training
    cache: CacheStart | None = None  # None: kept on the training log, reset on any other
    protocol: Protocol = "online"
    exclude_seen: ExcludeSeen | None = None  # None: as in training
    k: tuple[int, ...] = ()  # lengths of lists to measure
    tags: ItemTags | None = None  # for the diversity of the lists


@dataclass(frozen=True)
class Tested:
    """A report and the CPU seconds of its evaluation."""

    report: Report
    cpu_seconds: float


def train_trial(
    trial: Trial, split: Split, folder: Path, reporter: ProgressReporter, *, device: str, resume: bool
) -> FittedModel:
    """Train a trial's model into a folder; with `resume`, a finished model is only loaded."""
    with reporter.training(trial.name, folder) as listener, timed(folder, listener) as counted:
        return runs.train(
            split,
            trial.model,
            folder,
            trial.settings,
            device=device,
            resume=resume,
            listeners=(counted,),
            progress=counted,
        )


def evaluate_trial(
    trial: Trial,
    model: FittedModel,
    split: Split,
    folder: Path,
    reporter: ProgressReporter,
    *,
    device: str,
    log: str = "",
) -> Tested:
    """The report of a trial, computed once and stored in its run; `log` names the test log if it is another one."""
    way = _way(trial, log)
    files = folder / f"report{way}.json", folder / f"events{way}.parquet"
    return _stored(trial, split, *files) or _evaluated(trial, model, split, reporter, device, *files)


def _way(trial: Trial, log: str) -> str:
    """A file name suffix that says how a model was tested, empty for the default."""
    words = [log, trial.cache if trial.cache != "kept" else "", trial.protocol if trial.protocol != "online" else ""]
    words += [trial.exclude_seen and f"exclude-seen={trial.exclude_seen}"]
    words += [f"k={'+'.join(map(str, trial.k))}" if trial.k else ""]
    words += [f"tags={trial.tags.fingerprint}" if trial.tags else ""]
    words += [f"{key}={value}" for key, value in sorted(trial.scoring.items())]
    return "".join(f"-{word}" for word in words if word)


def _evaluated(
    trial: Trial,
    model: FittedModel,
    split: Split,
    reporter: ProgressReporter,
    device: str,
    report_file: Path,
    events_file: Path,
) -> Tested:
    folder = report_file.parent
    if trial.scoring:
        model = runs.load(folder, device=device, settings=trial.scoring)
    cache = runs.cache_start(model, split, trial.cache)
    began = time.process_time()
    with reporter.evaluating(trial.name, events_to_walk(split, cache)) as progress:
        report = runs.evaluate(
            model,
            split,
            protocol=trial.protocol,
            cache=cache,
            exclude_seen=trial.exclude_seen or _trained_with(folder).exclude_seen,
            k=trial.k,
            tags=trial.tags,
            progress=progress,
        )
    spent = time.process_time() - began
    report = replace(report, model=trial.name)
    report.write_events(events_file)
    # The report is written last and atomically: if it exists, both files are complete.
    stored = {**report.to_json(), "represents": sorted(report.represents), "cpu_seconds": spent}
    write_atomically(report_file, json.dumps(stored, indent=2) + "\n")
    return Tested(report, spent)


def _stored(trial: Trial, split: Split, report_file: Path, events_file: Path) -> Tested | None:
    """Return the report that an interrupted comparison stored, if any."""
    try:
        stored = json.loads(report_file.read_text())
        events = pl.read_parquet(events_file)
    except (OSError, ValueError, pl.exceptions.PolarsError):
        return None
    columns = {name: "normalised_rank" if name == "rank" else name for name in METRICS}
    start, stop = split.bounds("test")
    report = Report(
        model=trial.name,
        **{key: stored[key] for key in ("protocol", "cache", "exclude_seen", "seed", "parameters", "seconds")},
        block=stored.get("block", BLOCK[trial.protocol]),
        represents=frozenset(stored["represents"]),
        partition=split.partition(start, stop),
        results=EventResults(
            events=events["event"].to_numpy(),
            rank=events["rank"].to_numpy(),
            candidates=events["candidates"].to_numpy(),
            first=events["first"].to_numpy(),
            item_events=events["item_events"].to_numpy(),
            metrics={name: events[column].to_numpy() for name, column in columns.items()},
        ),
        k=trial.k,
        lists=_of_lists(stored.get("at_k", {})),
    )
    return Tested(report, stored["cpu_seconds"])


def _of_lists(at_k: dict[str, float | None]) -> dict[str, float]:
    """The metrics of lists among those with a cut-off; the others follow from the ranks of the events."""
    others = {name: value for name, value in at_k.items() if name.partition("@")[0] not in AT_K}
    return {name: float("nan") if value is None else value for name, value in others.items()}


def _trained_with(folder: Path) -> TrainingSettings:
    return check(TrainingSettings, json.loads((folder / "manifest.json").read_text())["training"])
