"""The same models under both protocols: how much of a published number is due to the leak."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from felrec.evaluation.plots import COLOURS
from felrec.evaluation.report import resolve_exclude_seen
from felrec.experiments.markdown import MarkdownTable, number, paper_cell
from felrec.experiments.outcome import Outcome
from felrec.experiments.paper import published
from felrec.experiments.plots import Panel, Series, plot_dots
from felrec.experiments.runner import ExperimentRunner, Result
from felrec.experiments.scale import Data

METRICS = ("rank", "hr@10_sampled", "hr@10", "mrr")
PARTITION = "total_representable"  # as in the paper's totals


def protocols(runner: ExperimentRunner, data: Sequence[Data], other: Data | None) -> Outcome:
    """The same models under the protocols `paper` and `online`: how much is due to the leak."""
    log = data[0]
    pairs = [_both(runner, name, log) for name in runner.chosen()]
    rows = [_compared(online, paper) for online, paper in pairs]
    notes = [
        "`online`: a block is scored before it is observed; an item without earlier events is a miss. `paper`: the"
        " published evaluation, which observes a batch of 1,024 events before scoring it",
        "both protocols include items the user already had and cover only the partitions that a model can represent, as"
        " the paper's totals do",
        "leak: `paper` minus `online`, for the same trained model",
    ]
    title = f"Both protocols, on {log.name}"
    plots = {f"Each model under both protocols, on {log.name}": partial(_plot, rows, title)}
    return Outcome(title, notes, _tables(rows), {"rows": rows}, plots)


def _both(runner: ExperimentRunner, name: str, log: Data) -> tuple[Result, Result]:
    trial = runner.trial(name)
    if resolve_exclude_seen("auto", log.split):
        trial = replace(trial, exclude_seen="no")  # else only one of the protocols would exclude seen items
    return runner.result(trial, log), runner.result(replace(trial, protocol="paper"), log)


def _compared(online: Result, paper: Result) -> dict[str, Any]:
    ours, theirs = online.report.partitions[PARTITION], paper.report.partitions[PARTITION]
    return {
        "model": online.trial.name,
        "online": ours,
        "paper": theirs,
        "leak": {metric: None if ours[metric] is None else theirs[metric] - ours[metric] for metric in METRICS},
        "published": {log: published(log).pair(online.trial.name, "total") for log in ("movielens-25m", "twitch")},
    }


def _tables(rows: Sequence[dict[str, Any]]) -> list[MarkdownTable]:
    tables = []
    for metric, better in (("rank", "lower"), ("hr@10_sampled", "higher"), ("hr@10", "higher"), ("mrr", "higher")):
        lines = [
            (row["model"], number(row["online"][metric]), number(row["paper"][metric]), _signed(row["leak"][metric]))
            for row in rows
        ]
        tables.append(
            MarkdownTable(f"{metric} ({better} is better)", ("model", "online", "paper (leaks)", "leak"), lines)
        )
    told = [
        (row["model"], *(paper_cell(row["published"][log]) for log in ("movielens-25m", "twitch")))
        for row in rows
        if any(row["published"].values())
    ]
    caption = "As published (Weimann and Conrad, Tables 1 and 2, total): rank / HR@10 of 101"
    return [*tables, MarkdownTable(caption, ("model", "MovieLens 25M", "Twitch"), told)]


def _signed(value: float | None) -> str:
    return number(value) if value is None else f"{value:+.3f}"


def _plot(rows: Sequence[dict[str, Any]], title: str, path: Path) -> None:
    panels = [
        Panel(
            f"{metric}\n({better} is better)",
            [
                Series("online", [row["online"][metric] for row in rows], COLOURS[0]),
                Series("paper (leaks)", [row["paper"][metric] for row in rows], COLOURS[5], filled=False),
            ],
        )
        for metric, better in (("rank", "lower"), ("hr@10_sampled", "higher"), ("hr@10", "higher"))
    ]
    plot_dots(title, [row["model"] for row in rows], [panels], path, joined=True)
