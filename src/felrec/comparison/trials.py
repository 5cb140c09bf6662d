"""A trial of a table: a model trained with certain settings and tested in a certain way, each done once."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from felrec import runs
from felrec.comparison.progress import ProgressReporter
from felrec.comparison.stopwatch import timed
from felrec.config import TrainingSettings, check
from felrec.data.split import Split
from felrec.evaluation.metrics import METRICS
from felrec.evaluation.protocols import BLOCK, EventResults, Protocol
from felrec.evaluation.report import CacheStart, ExcludeSeen, Report, events_to_walk
from felrec.files import write_atomically
from felrec.fitted import FittedModel


@dataclass(frozen=True)
class Trial:
    """What a table calls it, how it is trained, and how it is tested."""

    name: str
    model: str
    settings: dict[str, Any] = field(default_factory=dict)  # of the model and its training
    scoring: dict[str, Any] = field(default_factory=dict)  # settings that are changed after the training
    cache: CacheStart | None = None  # None: kept on the log of the training, reset on any other
    protocol: Protocol = "online"
    exclude_seen: ExcludeSeen | None = None  # None: as in the training


@dataclass(frozen=True)
class Tested:
    """A report, and the CPU seconds that it took."""

    report: Report
    cpu_seconds: float


def train_trial(
    trial: Trial, split: Split, folder: Path, reporter: ProgressReporter, *, device: str, resume: bool
) -> FittedModel:
    """Train a trial's model into a folder; with `resume`, what is finished is only loaded."""
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
    """The report of a trial, made once and kept in its run; `log` names the test log if it is another."""
    way = _way(trial, log)
    files = folder / f"report{way}.json", folder / f"events{way}.parquet"
    return _stored(trial, split, *files) or _evaluated(trial, model, split, reporter, device, *files)


def _way(trial: Trial, log: str) -> str:
    """Say in a file's name how a model was tested, where that is not the usual way."""
    said = [log, trial.cache if trial.cache != "kept" else "", trial.protocol if trial.protocol != "online" else ""]
    said += [trial.exclude_seen and f"exclude-seen={trial.exclude_seen}"]
    said += [f"{key}={value}" for key, value in sorted(trial.scoring.items())]
    return "".join(f"-{word}" for word in said if word)


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
            progress=progress,
        )
    spent = time.process_time() - began
    report = replace(report, model=trial.name)
    report.write_events(events_file)
    # The report comes last and whole: its presence says that both files are complete.
    told = {**report.to_json(), "represents": sorted(report.represents), "cpu_seconds": spent}
    write_atomically(report_file, json.dumps(told, indent=2) + "\n")
    return Tested(report, spent)


def _stored(trial: Trial, split: Split, report_file: Path, events_file: Path) -> Tested | None:
    """Return the report that an interrupted comparison left, if it is there."""
    try:
        told = json.loads(report_file.read_text())
        events = pl.read_parquet(events_file)
    except (OSError, ValueError, pl.exceptions.PolarsError):
        return None
    columns = {name: "normalised_rank" if name == "rank" else name for name in METRICS}
    start, stop = split.bounds("test")
    report = Report(
        model=trial.name,
        **{key: told[key] for key in ("protocol", "cache", "exclude_seen", "seed", "parameters", "seconds")},
        block=told.get("block", BLOCK[trial.protocol]),
        represents=frozenset(told["represents"]),
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
    return Tested(report, told["cpu_seconds"])


def _trained_with(folder: Path) -> TrainingSettings:
    return check(TrainingSettings, json.loads((folder / "manifest.json").read_text())["training"])
