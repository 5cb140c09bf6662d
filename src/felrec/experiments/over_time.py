"""The paper's figure over time: rank against the number of earlier events of the item."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from felrec.data.split import PARTITIONS
from felrec.evaluation.plots import COLOURS, GREY, MARKERS, age_bins, age_label, new_figure, save_figure
from felrec.evaluation.report import Report
from felrec.experiments.markdown import MarkdownTable, number
from felrec.experiments.outcome import Outcome
from felrec.experiments.runner import ExperimentRunner
from felrec.experiments.scale import Data

USUAL = ("sasrec", "felrec-q", "felrec-s")
GROUPS = {"I": ("new_items",), "O+U": ("observed", "new_users")}
NAMES = {"I": "new items (I)", "O+U": "observed and new users (O+U)"}


def over_time(runner: ExperimentRunner, data: Sequence[Data], other: Data | None) -> Outcome:
    """Average rank against the number of earlier events of the item."""
    log = data[0]
    reports = [runner.result(runner.trial(name), log).report for name in runner.chosen(USUAL)]
    found = [curve for report in reports for curve in curves(report)]
    notes = [
        "protocol `online`; events are grouped by the number of earlier events of the item, in doubling steps, because"
        " averages over few events are noisy; I: new items, O+U: observed and new users",
        "an item's first event (0 earlier events) is a miss for every model: the item is not in the catalogue yet",
        "paper (Weimann and Conrad, arXiv 2210.16928; the figure has no numbers): on MovieLens 25M FELRec reaches"
        " SASRec after about 1,000 events of an item, on Twitch SASRec stays ahead; SASRec has no curve I",
    ]
    title = f"Rank by number of earlier events of the item, on {log.name}"
    plots = {
        f"Average rank against the number of earlier events of the item, on {log.name}": partial(_plot, found, title)
    }
    return Outcome(title, notes, [_table(found)], {"curves": found}, plots)


def curves(report: Report) -> list[dict[str, Any]]:
    """For each group the model can represent: number of events, mean rank and mean hr@10 by bin of earlier events."""
    found = []
    for group, partitions in GROUPS.items():
        if not set(partitions) & report.represents:
            continue
        codes = [PARTITIONS.index(name) for name in partitions if name in report.represents]
        chosen = np.isin(report.partition, codes)
        bins = age_bins(report.results.item_events[chosen])
        events = np.bincount(bins)
        filled = np.flatnonzero(events)
        means = {
            name: np.bincount(bins, weights=report.results.metrics[name][chosen])[filled] / events[filled]
            for name in ("rank", "hr@10")
        }
        points = [
            {
                "bin": place,
                "item_events": age_label(place),
                "events": int(events[place]),
                **{name: float(values[at]) for name, values in means.items()},
            }
            for at, place in enumerate(filled.tolist())
        ]
        found.append({"model": report.model, "group": group, "points": points})
    return found


def _table(curves: Sequence[dict[str, Any]]) -> MarkdownTable:
    by_bin = [{point["bin"]: point for point in curve["points"]} for curve in curves]
    bins = sorted(set().union(*by_bin))
    heads = [f"{curve['model']} {curve['group']}, rank (events)" for curve in curves]
    rows = []
    for place in bins:
        found = [points.get(place) for points in by_bin]
        cells = [f"{number(point['rank'])} ({point['events']:,})" if point else "—" for point in found]
        rows.append([age_label(place), *cells])
    return MarkdownTable(
        "Average rank by the number of earlier events of the item", ("earlier events of the item", *heads), rows
    )


def _plot(curves: Sequence[dict[str, Any]], title: str, path: Path) -> None:
    figure, (top, bottom) = new_figure(8.5, 5.8, rows=2, height_ratios=(3, 1), sharex=True)
    models = list(dict.fromkeys(curve["model"] for curve in curves))
    last = max(point["bin"] for curve in curves for point in curve["points"])
    for curve in curves:
        place, new = models.index(curve["model"]), curve["group"] == "I"
        top.plot(
            [point["bin"] for point in curve["points"]],
            [point["rank"] for point in curve["points"]],
            color=COLOURS[place % len(COLOURS)],
            marker=MARKERS[place % len(MARKERS)],
            markersize=5,
            linestyle="--" if new else "-",
            markerfacecolor="white" if new else None,
            label=f"{curve['model']}, {NAMES[curve['group']]}",
        )
    top.set_ylim(0, 1.02)
    top.set_ylabel("average rank\n(lower is better)")
    top.legend(frameon=False, fontsize=8)
    _events(bottom, curves, last)
    bottom.set_xticks(range(last + 1), [age_label(place) for place in range(last + 1)], fontsize=8)
    bottom.set_xlim(-0.5, last + 0.5)
    bottom.set_xlabel("events of the item so far")
    figure.suptitle(title, fontsize=11, x=0.01, ha="left")
    save_figure(figure, path)


def _events(axes: Any, curves: Sequence[dict[str, Any]], last: int) -> None:
    """Draw the number of events behind each point, by group."""
    for group, shift, colour in (("I", -0.2, "#BBBBBB"), ("O+U", 0.2, GREY)):
        counts = np.zeros(last + 1)
        for curve in curves:
            for point in curve["points"] if curve["group"] == group else ():
                counts[point["bin"]] = max(counts[point["bin"]], point["events"])
        axes.bar(np.arange(last + 1) + shift, counts, 0.4, color=colour, label=group)
    axes.set_yscale("symlog", linthresh=10)
    axes.set_ylabel("events")
    axes.legend(frameon=False, fontsize=8, ncols=2)
