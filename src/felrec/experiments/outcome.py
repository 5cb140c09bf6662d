"""Writes the results of an experiment: a Markdown page, a JSON file, plots, and the exact config."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from felrec.experiments.markdown import MarkdownTable
from felrec.experiments.runner import ExperimentRunner, Result
from felrec.experiments.scale import Data
from felrec.experiments.search import RATES
from felrec.training.checkpoint import versions
from felrec.version import __version__


@dataclass(frozen=True)
class Outcome:
    """The result of an experiment, ready to be written."""

    title: str
    notes: Sequence[str]
    tables: Sequence[MarkdownTable]
    data: dict[str, Any]
    plots: Mapping[str, Callable[[Path], None]] = field(default_factory=dict)  # caption -> function that draws it


def write(
    name: str, outcome: Outcome, runner: ExperimentRunner, data: Sequence[Data], out: Path, seconds: float
) -> list[Path]:
    """Write all files of an experiment; returns their paths, the page first."""
    out.mkdir(parents=True, exist_ok=True)
    page, told, config = (out / f"{name}{ending}" for ending in (".md", ".json", ".config.json"))
    stems = [name, *(f"{name}-{number}" for number in range(2, len(outcome.plots) + 1))]
    pictures = dict(zip(stems, outcome.plots.items(), strict=False))
    for stem, (_, draw) in pictures.items():
        for ending in ("png", "svg"):
            draw(out / f"{stem}.{ending}")
    scale = {**runner.scale.model_dump(), "search_lr": runner.search_lr, "text": scale_text(runner)}
    common = {"experiment": name, "title": outcome.title, "logs": [log.to_json() for log in data], "scale": scale}
    told.write_text(json.dumps({**common, **outcome.data}, indent=2) + "\n")
    config.write_text(json.dumps({**common, **_config(runner, seconds)}, indent=2) + "\n")
    page.write_text(_page(outcome, runner, data, {stem: shows for stem, (shows, _) in pictures.items()}))
    return [page, told, *(out / f"{stem}.{ending}" for stem in pictures for ending in ("png", "svg")), config]


def scale_text(runner: ExperimentRunner) -> str:
    """The scale and the choice of the learning rate, in words."""
    rates = ", ".join(f"{rate:g}" for rate in RATES)
    tenth = "a tenth of the budget" if runner.scale.minutes else "a tenth of the epochs"
    chosen = f"the best of {rates} by validation rank, each tried with {tenth} in addition" if runner.search_lr else ""
    return f"{runner.scale.describe()}; learning rate: {chosen or 'the default of each model, not searched'}"


def _page(outcome: Outcome, runner: ExperimentRunner, data: Sequence[Data], pictures: dict[str, str]) -> str:
    lines = [f"# {outcome.title}", ""]
    lines += [f"* log: {log.describe()}" for log in data]
    lines += [f"* scale: {scale_text(runner)}"]
    if runner.settings:
        given = ", ".join(f"`{name}={value}`" for name, value in sorted(runner.settings.items()))
        lines += [f"* settings that differ from the defaults, for every model that has them: {given}"]
    lines += [f"* {note}" for note in outcome.notes]
    lines += [f"* felrec {__version__}, {datetime.now(UTC):%Y-%m-%d}, {_machine_text()}", ""]
    for table in outcome.tables:
        lines += [table.markdown(), ""]
    for stem, shows in pictures.items():
        lines += [f"![{shows}]({stem}.png)", ""]
    return "\n".join(lines)


def _config(runner: ExperimentRunner, seconds: float) -> dict[str, Any]:
    return {
        "felrec": __version__,
        "versions": versions(),
        "machine": machine(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": seconds,  # of this command only; earlier commands may have done most of the work
        "device": runner.device,
        "settings": runner.settings,
        "rows": [_trial_config(result) for result in runner.results],
    }


def _trial_config(result: Result) -> dict[str, Any]:
    trial, manifest = result.trial, result.manifest
    return {
        "name": trial.name,
        "model": trial.model,
        "settings": {**manifest["settings"], **trial.scoring},
        "training": manifest["training"] if result.plan else None,
        "plan": result.plan.to_json() if result.plan else None,
        "search": result.search,
        "trained_on": manifest["log"]["fingerprint"],
        "protocol": result.report.protocol,
        "cache": result.report.cache,
        "exclude_seen": result.report.exclude_seen,
        "seed": manifest["training"]["seed"] if result.plan else result.report.seed,
        "run": f"{result.run.parent.name}/{result.run.name}",
    }


def machine() -> dict[str, Any]:
    """The machine that produced the numbers."""
    return {
        "system": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
    }


def _machine_text() -> str:
    about = machine()
    threads = "1 thread" if about["threads"] == 1 else f"{about['threads']} threads"
    return f"{about['cores']} cores of {about['processor']}, {threads}"


def _processor() -> str:
    """The name of the processor, from /proc/cpuinfo where it exists."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
