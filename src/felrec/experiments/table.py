"""The paper's two main tables: all models by partition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from felrec.comparison import ENOUGH, Difference, differences
from felrec.data.split import PARTITIONS
from felrec.evaluation.plots import COLOURS, SHOWN
from felrec.experiments.cost import cost_table, costs
from felrec.experiments.markdown import CELL, PAPER_CELL, MarkdownTable, cell, millions, number, paper_cell
from felrec.experiments.outcome import Outcome
from felrec.experiments.paper import Published, published
from felrec.experiments.plots import Panel, Series, plot_dots
from felrec.experiments.runner import ExperimentRunner, Result
from felrec.experiments.scale import Data
from felrec.experiments.search import at_the_edge

TRANSFERRED = ("felrec-q", "felrec-s")  # also tested with the cache reset, and trained on another log
MODERN_NAME = "sasrec-ce"
MODERN = {  # SASRec with the settings that reach a published number (docs/baselines.md)
    **{"loss": "cross-entropy", "width": 64, "layers": 2, "heads": 1, "feed_forward": 128},
    **{"optimizer": "adamw", "lr": 0.002, "warmup": 0.05, "batch_size": 4096},
}


def table_movielens(runner: ExperimentRunner, data: Sequence[Data], other: Data | None) -> Outcome:
    """All models by partition, beside the paper's MovieLens 25M."""
    return _table(runner, data[0], other, published("movielens-25m"))


def table_twitch(runner: ExperimentRunner, data: Sequence[Data], other: Data | None) -> Outcome:
    """All models by partition, beside the paper's Twitch."""
    return _table(runner, data[0], other, published("twitch"))


def _table(runner: ExperimentRunner, data: Data, other: Data | None, paper: Published) -> Outcome:
    results = [result for name in runner.chosen() for result in _results(runner, name, data, other)]
    reports = [result.report for result in results]
    found, gaps = costs(results), differences(reports, data.split.test.users)
    told = {
        "paper": {"source": paper.source, "table": paper.table, "log": paper.title},
        "rows": [{**result.report.to_json(), "paper": paper.rows.get(result.trial.name)} for result in results],
        "costs": found,
        "differences": [gap.to_json() for gap in gaps],
    }
    total, parts = [gap for gap in gaps if gap.partition == "total"], [gap for gap in gaps if gap.partition != "total"]
    tables = [
        _main_table(results, paper),
        _difference_table("total", total),
        _difference_table(f"partitions with at least {ENOUGH} events", [gap for gap in parts if _is_ours(gap.model)]),
        cost_table(found),
    ]
    title = f"All models by partition, on {data.name}"
    plots = {f"hr@10 and rank of each model by partition, on {data.name}": partial(_plot, results, title)}
    return Outcome(title, _notes(results, paper, data, other), tables, told, plots)


def _results(runner: ExperimentRunner, model: str, data: Data, other: Data | None) -> list[Result]:
    trial = runner.trial(model)
    found = [runner.result(trial, data)]
    if model == "sasrec":
        found.append(runner.result(runner.trial(model, MODERN_NAME, **(MODERN | trial.settings)), data))
    if model in TRANSFERRED:
        found.append(runner.result(replace(trial, name=f"{model}-reset", cache="reset"), data))
        if other is not None:
            found.append(runner.result(replace(trial, name=f"{model}-zero", cache="reset"), other, tested=data))
    return found


def _notes(results: Sequence[Result], paper: Published, data: Data, other: Data | None) -> list[str]:
    first = results[0].report
    seen = "excluded" if first.exclude_seen else "included"
    notes = [
        f"ours: protocol `online`, items the user already had are {seen}; each cell: {CELL}",
        f"paper: {paper.source}, {paper.table}, on {paper.title} with the published protocol, which leaks; each cell:"
        f" {PAPER_CELL}. The logs differ: compare the order of the models, not the values",
        "`total` counts events that a model cannot represent as misses; `representable` excludes them, as in the paper",
        f"{100 * first.first_events:.1f} % of the test events are the first of their item: a miss for every model",
    ]
    if edge := at_the_edge((result.trial.name, result.search) for result in results if result.search):
        notes.append(f"best learning rate at the edge of the search, so a better one may exist: {', '.join(edge)}")
    cut = [result for result in results if result.plan and result.plan.train_events]
    if cut:
        names, all_ = ", ".join(result.trial.name for result in cut), len(data.split.train)
        newest = any(result.plan and (result.plan.train_events or all_) < all_ for result in cut)
        notes.append(
            f"no epoch with its validation fits the budget of {names}: fewer events have gradients, few are validated"
            f"{', and only the newest are trained on' if newest else ''} (see the last table); tested after replaying"
            " the whole log with the final weights (cache `reset`)"
        )
    if any(result.trial.name == MODERN_NAME for result in results):
        notes.append(f"{MODERN_NAME}: SASRec with current practice, cross-entropy over the whole catalogue and AdamW")
    if any(result.trial.model in TRANSFERRED for result in results):
        zero = (
            f"weights trained on {other.describe()}" if other else "omitted, because no other log was given (`--other`)"
        )
        notes.append(f"-reset: the cache is emptied and the log replayed with the final weights; -zero: {zero}")
    return notes


def _main_table(results: Sequence[Result], paper: Published) -> MarkdownTable:
    names = (*PARTITIONS, "total")
    columns = ["model", "parameters", "paper"]
    for name in PARTITIONS:
        columns += [f"{name.replace('_', ' ')} ({100 * results[0].report.partitions[name]['share']:.1f} %)", "paper"]
    columns += ["total", "representable", "total (paper)"]
    rows = []
    for result in results:
        own, row = result.report.partitions, result.trial.name
        cells = [row, millions(result.report.parameters), millions(paper.rows.get(row, {}).get("parameters"))]
        for name in names:
            cells.append(cell(own[name]))
            if name == "total":
                cells.append(cell(own["total_representable"]))
            cells.append(paper_cell(paper.pair(row, name)))
        rows.append(cells)
    return MarkdownTable(f"{CELL}; paper: {PAPER_CELL}", columns, rows)


def _is_ours(model: str) -> bool:
    return model.startswith("felrec-")


def _difference_table(over: str, gaps: Sequence[Difference]) -> MarkdownTable:
    rows = [
        (
            gap.model,
            gap.partition.replace("_", " "),
            gap.metric,
            gap.baseline,
            number(gap.interval.difference, 4),
            f"{number(gap.interval.low, 4)} to {number(gap.interval.high, 4)}",
            gap.interval.verdict,
        )
        for gap in gaps
    ]
    columns = ("model", "events", "metric", "best parameter-free model", "difference", "95 % interval", "verdict")
    return MarkdownTable(
        f"Difference to the best parameter-free model, {over}, paired bootstrap over users", columns, rows, left=4
    )


def _plot(results: Sequence[Result], title: str, path: Path) -> None:
    reports = [result.report.partitions for result in results]
    shares = reports[0]

    def panel(metric: str, name: str, better: str, colour: str) -> Panel:
        events = "all events" if name == "total" else f"{100 * shares[name]['share']:.1f} % of events"
        label = f"{metric}, {name.replace('_', ' ')}\n{events}, {better} is better"
        return Panel(label, [Series(metric, [report[name][metric] for report in reports], colour)])

    rows = [
        [panel("hr@10", name, "higher", COLOURS[0]) for name in SHOWN],
        [panel("rank", name, "lower", COLOURS[5]) for name in SHOWN],
    ]
    plot_dots(title, [result.trial.name for result in results], rows, path)
