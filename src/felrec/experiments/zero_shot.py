"""Zero-shot transfer: weights trained on one log and tested on another, for every pair of logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from felrec.errors import ConfigError
from felrec.evaluation.plots import COLOURS
from felrec.evaluation.report import CacheStart
from felrec.experiments.budget import is_trained
from felrec.experiments.markdown import CELL, PAPER_CELL, MarkdownTable, cell, paper_cell
from felrec.experiments.outcome import Outcome
from felrec.experiments.paper import published
from felrec.experiments.plots import Panel, Series, plot_dots
from felrec.experiments.runner import ExperimentRunner, Result
from felrec.experiments.scale import Data
from felrec.registry import model_kind

USUAL = ("felrec-q", "felrec-s")
PARTITIONS = ("observed", "new_users", "new_items", "total")


@dataclass(frozen=True)
class Transfer:
    """A model trained on one log and tested on the same or another log."""

    model: str
    trained_on: str
    tested_on: str
    cache: CacheStart
    result: Result

    @property
    def name(self) -> str:
        """The row name in the table."""
        own = "own" if self.trained_on == self.tested_on else self.trained_on
        return f"{self.model}, {own} weights, {self.cache}"

    def to_json(self) -> dict[str, Any]:
        """The row of the JSON file."""
        return {**self.result.report.to_json(), "model": self.model, "row": self.name, "trained_on": self.trained_on,
                "tested_on": self.tested_on}  # fmt: skip


def zero_shot(runner: ExperimentRunner, data: Sequence[Data], other: Data | None) -> Outcome:
    """Weights trained on one log and tested on another, for every pair, beside the log's own weights."""
    names = [log.name for log in data]
    if len(set(names)) < len(names):
        raise ConfigError(f"log names must differ, but these are {', '.join(names)}; rename a file")
    models = runner.chosen(USUAL)
    for name in models:
        if model_kind(name).one_log or not is_trained(model_kind(name)):
            raise ConfigError(f"{name} has no weights that transfer to another log; use --models felrec-q")
    found = [one for tested in data for model in models for one in _transfers(runner, model, tested, data)]
    notes = [
        f"protocol `online`; each cell: {CELL}",
        "kept: the cache as training left it; reset: emptied, then the events before the test replayed with the final"
        " weights; empty: the test starts with an empty cache and an empty catalogue",
    ]
    tables = [_table(log, [one for one in found if one.tested_on == log.name]) for log in data]
    title = f"Zero-shot: {', '.join(names)}"
    plots = {"Own weights and weights of other logs, on each log": partial(_plot, found, title)}
    told = {"rows": [one.to_json() for one in found], "paper": _paper_json()}
    return Outcome(title, notes, [*tables, _paper_table()], told, plots)


def _transfers(runner: ExperimentRunner, model: str, tested: Data, data: Sequence[Data]) -> list[Transfer]:
    """All trials on one tested log: its own weights with each cache, then the weights of the other logs."""
    trial, found = runner.trial(model), []
    for source in (tested, *(log for log in data if log is not tested)):
        own = source is tested
        caches: tuple[CacheStart, ...] = ("kept", "reset", "empty") if own else ("reset", "empty")
        for cache in caches:
            one = replace(trial, cache=None if cache == "kept" else cache)
            result = runner.result(one, source, tested=None if own else tested)
            found.append(Transfer(model, source.name, tested.name, result.report.cache, result))
    if found[0].cache == "reset":  # trained on the newest events only, so there is no cache to keep
        del found[0]
    return found


def _table(log: Data, found: Sequence[Transfer]) -> MarkdownTable:
    first = found[0].result.report.partitions
    shares = [f"{name.replace('_', ' ')} ({100 * first[name]['share']:.1f} %)" for name in PARTITIONS[:-1]]
    rows = [(one.name, *(cell(one.result.report.partitions[name]) for name in PARTITIONS)) for one in found]
    return MarkdownTable(f"Tested on {log.describe()}", ("weights and cache", *shares, "total"), rows)


def _paper_table() -> MarkdownTable:
    rows = []
    for name in ("felrec-q", "felrec-q-reset", "felrec-q-zero"):
        tables = [published(log) for log in ("movielens-25m", "twitch")]
        rows.append((name, *(paper_cell(table.pair(name, "total")) for table in tables)))
    caption = f"Paper (Tables 1 and 2, published protocol): {PAPER_CELL}, total; -zero: weights of the other log"
    return MarkdownTable(caption, ("model", "MovieLens 25M", "Twitch"), rows)


def _paper_json() -> dict[str, Any]:
    names = ("felrec-q", "felrec-q-reset", "felrec-q-zero")
    return {log: {name: published(log).rows[name] for name in names} for log in ("movielens-25m", "twitch")}


def _plot(found: Sequence[Transfer], title: str, path: Path) -> None:
    rows = [f"{one.tested_on}: {one.name}" for one in found]
    panels = []
    for metric, better, colour in (("hr@10", "higher", COLOURS[0]), ("rank", "lower", COLOURS[5])):
        for name in ("new_items", "total"):
            label = f"{metric}, {name.replace('_', ' ')}\n{better} is better"
            values = [one.result.report.partitions[name][metric] for one in found]
            panels.append(Panel(label, [Series(metric, values, colour)]))
    plot_dots(title, rows, [panels], path)
