"""Item cold start: how soon a new item ranks high for its next users."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from felrec.data.split import PARTITIONS
from felrec.errors import ConfigError, DataError
from felrec.evaluation.plots import COLOURS, GREY, MARKERS, age_label, new_figure, save_figure
from felrec.experiments.budget import represented
from felrec.experiments.markdown import MarkdownTable, number
from felrec.experiments.outcome import Outcome
from felrec.experiments.over_time import curves
from felrec.experiments.runner import ExperimentRunner
from felrec.experiments.scale import Data
from felrec.registry import model_kind

USUAL = ("jodie", "decayed-popularity", "felrec-q", "felrec-s")
TOP = 0.1  # the top tenth of the catalogue, as a normalised rank


def cold_start(runner: ExperimentRunner, data: Sequence[Data], other: Data | None) -> Outcome:
    """Average rank of new items after 0, 1, 2, 4 … events, and events until they reach the top 10 %."""
    log = data[0]
    if not (log.split.partition(*log.split.bounds("test")) == PARTITIONS.index("new_items")).any():
        raise DataError(f"{log.name}: the test part has no events of new items; choose another log")
    chosen = runner.chosen(USUAL)
    models = [name for name in chosen if "new_items" in represented(model_kind(name))]
    if not models:
        raise ConfigError(f"{', '.join(chosen)} cannot represent new items; choose others with --models")
    reports = [runner.result(runner.trial(name), log).report for name in models]
    found = [curve for report in reports for curve in curves(report) if curve["group"] == "I"]
    for curve in found:
        curve["events_until_top_tenth"] = _until_top(curve["points"])
        curve["hr@10"] = _hit_rate(curve["points"])
    notes = [
        "protocol `online`, test events of new items only: items without events in the training part; each event is"
        " ranked against the whole catalogue for its user, and grouped by the number of earlier events of the item",
        "an item's first event (0 earlier events) is a miss for every model: the item is not in the catalogue yet",
        "`hr@10`: of all these events, first events included",
        f"`top 10 %`: the number of earlier events from which the average rank stays at {TOP} or better",
    ]
    if omitted := [name for name in chosen if name not in models]:
        notes.append(f"omitted, because they cannot represent new items: {', '.join(omitted)}")
    title = f"New items by number of events, on {log.name}"
    plots = {f"Average rank of new items by their number of events so far, on {log.name}": partial(_plot, found, title)}
    return Outcome(title, notes, [_table(found)], {"curves": found}, plots)


def _until_top(points: Sequence[dict[str, Any]]) -> str | None:
    """The first group of event counts from which the rank stays in the top tenth."""
    reached = None
    for point in reversed(points):
        if point["rank"] > TOP:
            break
        reached = point["item_events"]
    return reached


def _hit_rate(points: Sequence[dict[str, Any]]) -> float:
    """The mean hr@10 over the events of all points."""
    hits = sum(point["events"] * point["hr@10"] for point in points)
    return float(hits / sum(point["events"] for point in points))


def _table(found: Sequence[dict[str, Any]]) -> MarkdownTable:
    by_bin = [{point["bin"]: point for point in curve["points"]} for curve in found]
    bins = sorted(set().union(*by_bin))
    events = {place: next(points[place]["events"] for points in by_bin if place in points) for place in bins}
    columns = (
        "earlier events of the item",
        *(f"{age_label(place)} ({events[place]:,})" for place in bins),
        "top 10 %",
        "hr@10",
    )
    rows = []
    for curve, points in zip(found, by_bin, strict=True):
        ranks = [number(points[place]["rank"] if place in points else None) for place in bins]
        rows.append((curve["model"], *ranks, curve["events_until_top_tenth"] or "—", number(curve["hr@10"])))
    return MarkdownTable("Average rank of new items (number of test events in the column heads)", columns, rows)


def _plot(found: Sequence[dict[str, Any]], title: str, path: Path) -> None:
    figure, axes = new_figure(7.5, 4.2)
    last = max(point["bin"] for curve in found for point in curve["points"])
    for place, curve in enumerate(found):
        axes.plot(
            [point["bin"] for point in curve["points"]],
            [point["rank"] for point in curve["points"]],
            color=COLOURS[place % len(COLOURS)],
            marker=MARKERS[place % len(MARKERS)],
            markersize=5,
            label=curve["model"],
        )
    axes.axhline(TOP, color=GREY, linewidth=0.8, linestyle=":")
    axes.text(last + 0.4, TOP, "top 10 %", color=GREY, fontsize=8, ha="right", va="bottom")
    axes.set_xticks(range(last + 1), [age_label(place) for place in range(last + 1)], fontsize=8)
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("events of the new item so far")
    axes.set_ylabel("average rank for its next user\n(lower is better)")
    axes.legend(frameon=False, fontsize=8)
    figure.suptitle(title, fontsize=11, x=0.01, ha="left")
    save_figure(figure, path)
