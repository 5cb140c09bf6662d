"""Ablation of the recipe `ordinary`: how much each of its changes contributes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from felrec.errors import ConfigError
from felrec.evaluation.plots import COLOURS, MARKERS
from felrec.experiments.cost import cost_table, costs
from felrec.experiments.markdown import MarkdownTable, millions, number
from felrec.experiments.outcome import Outcome
from felrec.experiments.plots import Panel, Series, plot_dots
from felrec.experiments.runner import ExperimentRunner, Result
from felrec.experiments.scale import Data

RECIPE = "ordinary"
LEFT_OUT: tuple[tuple[str, dict[str, Any]], ...] = (
    ("nothing left out", {}),
    ("zero cache, no seeds", {"cache": "zero", "seed_share": 0.0}),
    ("items keep no seed", {"seed_share": 0.0}),
    ("vectors of any length", {"written": "encoded"}),
    ("training writes as published", {"training_writes": "published"}),
    ("published encoder", {"encoder": "published"}),
    ("published heads", {"projection": "mlp"}),
    ("scored from raw vectors", {"score_from": "vectors"}),
    ("published loss", {"negatives": "queue"}),
    ("L_x with its full weight", {"item_loss": 1.0}),
    ("no popularity prior", {"prior_half_lives": []}),
    ("SGD at 0.01", {"optimizer": "sgd", "lr": 0.01}),
)
MODELS = ("felrec-q",)
METRICS = ("rank", "hr@10", "mrr")


def ablation_ordinary(runner: ExperimentRunner, data: Sequence[Data], other: Data | None) -> Outcome:
    """FELRec with the recipe `ordinary`, and with one of its changes left out."""
    log = data[0]
    results = {model: _results(runner, model, log) for model in _models(runner)}
    every = [result for several in results.values() for result in several]
    found = costs(every)
    told = {"rows": [result.report.to_json() for result in every], "costs": found}
    seen = "excluded" if every[0].report.exclude_seen else "included"
    title = f"The recipe ordinary with one change left out, on {log.name}"
    notes = [
        f"protocol `online`, items the user already had are {seen}; the recipe is not in the paper",
        "each row is trained separately; a row that is better than the first says that its change does not help here",
    ]
    return Outcome(title, notes, [_table(results), cost_table(found)], told, {title: partial(_plot, results, title)})


def _models(runner: ExperimentRunner) -> list[str]:
    chosen = [name for name in runner.chosen(MODELS) if name in ("felrec-q", "felrec-p")]
    if not chosen:
        raise ConfigError("the recipe ordinary needs felrec-q or felrec-p; add one of them to --models")
    return chosen


def _results(runner: ExperimentRunner, model: str, log: Data) -> list[Result]:
    return [
        runner.result(runner.trial(model, f"{model}: {name}", recipe=RECIPE, **left_out), log)
        for name, left_out in LEFT_OUT
    ]


def _table(results: dict[str, list[Result]]) -> MarkdownTable:
    partitions = ("total", "new_items", "new_users")
    columns = ["left out", "parameters", *(f"{name.replace('_', ' ')}: rank / hr@10 / mrr" for name in partitions)]
    rows = []
    for result in (result for several in results.values() for result in several):
        values = result.report.partitions
        cells = [" / ".join(number(values[name][metric]) for metric in METRICS) for name in partitions]
        rows.append((result.trial.name, millions(result.report.parameters), *cells))
    return MarkdownTable("rank / hr@10 / mrr", columns, rows)


def _plot(results: dict[str, list[Result]], title: str, path: Path) -> None:
    panels = [
        Panel(
            label,
            [
                Series(model, [result.report.metric(metric) for result in several], COLOURS[at], MARKERS[at])
                for at, (model, several) in enumerate(results.items())
            ],
        )
        for metric, label in (("hr@10", "hr@10, total\n(higher is better)"), ("mrr", "mrr, total\n(higher is better)"))
    ]
    plot_dots(title, [name for name, _ in LEFT_OUT], [panels], path)
