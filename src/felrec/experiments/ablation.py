"""The paper's ablations: how much each part of FELRec contributes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from felrec.comparison.trials import Trial
from felrec.errors import ConfigError
from felrec.evaluation.plots import COLOURS, GREY, MARKERS
from felrec.experiments.cost import cost_table, costs
from felrec.experiments.markdown import CELL, PAPER_CELL, MarkdownTable, cell, millions, paper_cell
from felrec.experiments.outcome import Outcome
from felrec.experiments.paper import Published, published
from felrec.experiments.plots import Panel, Series, plot_dots
from felrec.experiments.runner import ExperimentRunner, Result
from felrec.experiments.scale import Data

VARIANTS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("felrec-q", "felrec-q", {}),
    ("felrec-p", "felrec-p", {}),
    ("felrec-q-ln", "felrec-q", {"normalisation": "layer"}),
    ("felrec-p-ln", "felrec-p", {"normalisation": "layer"}),
    ("felrec-q-nomlp", "felrec-q", {"projection": "none"}),
    ("felrec-q-sharemlp", "felrec-q", {"share_projections": True}),
    ("felrec-q-notype", "felrec-q", {"type_embedding": False}),
)
WHAT = {
    "felrec-q-ln": "layer instead of batch normalisation",
    "felrec-p-ln": "layer instead of batch normalisation",
    "felrec-q-nomlp": "no projections",
    "felrec-q-sharemlp": "one projection for users and items",
    "felrec-q-notype": "no type embedding",
    "felrec-q-nn": "scores from the ten nearest users",
}


def ablation(runner: ExperimentRunner, data: Sequence[Data], other: Data | None) -> Outcome:
    """FELRec with one part changed or removed: -LN, -noMLP, -shareMLP, -noType and -NN."""
    paper, log = published("ablation"), data[0]
    results = [runner.result(trial, log) for trial in _trials(runner)]
    found = costs(results)
    told = {
        "paper": {"source": paper.source, "table": paper.table, "log": paper.title},
        "rows": [{**result.report.to_json(), "paper": paper.rows[result.trial.name]} for result in results],
        "costs": found,
    }
    seen = "excluded" if results[0].report.exclude_seen else "included"
    notes = [
        f"ours: protocol `online`, items the user already had are {seen}; each cell: {CELL}",
        f"paper: {paper.source}, {paper.table}, on {paper.title} with the published protocol, which leaks; each cell:"
        f" {PAPER_CELL}",
        "-NN is not trained separately: it is felrec-q, scored with `neighbours=10`",
    ]
    title = f"Ablations, on {log.name}"
    plots = {f"Ablations on {log.name}, ours and the paper's": partial(_plot, results, paper, title)}
    return Outcome(title, notes, [_table(results, paper), cost_table(found)], told, plots)


def _trials(runner: ExperimentRunner) -> list[Trial]:
    chosen = runner.chosen(("felrec-q", "felrec-p"))
    trials = [runner.trial(model, name, **variant) for name, model, variant in VARIANTS if model in chosen]
    if not trials:
        raise ConfigError("the ablations need felrec-q or felrec-p; add one of them to --models")
    if "felrec-q" in chosen:
        trials.append(replace(runner.trial("felrec-q"), name="felrec-q-nn", scoring={"neighbours": 10}))
    return trials


def _table(results: Sequence[Result], paper: Published) -> MarkdownTable:
    rows = []
    for result in results:
        name, own = result.trial.name, result.report.partitions
        cells = (cell(own["total"]), paper_cell(paper.pair(name, "total")), cell(own["new_items"]))
        rows.append((name, WHAT.get(name, "as published"), millions(result.report.parameters), *cells))
    columns = ("model", "change", "parameters", "total", "total (paper)", "new items")
    return MarkdownTable(f"{CELL}; paper: {PAPER_CELL}", columns, rows, left=2)


def _plot(results: Sequence[Result], paper: Published, title: str, path: Path) -> None:
    def panel(metric: str, at: int, label: str) -> Panel:
        ours = [result.report.metric(metric) for result in results]
        pairs = [paper.pair(result.trial.name, "total") for result in results]
        theirs = [pair[at] if pair else None for pair in pairs]
        return Panel(
            label,
            [
                Series("ours", ours, COLOURS[0]),
                Series(f"paper, {paper.title}, published protocol", theirs, GREY, MARKERS[3], filled=False),
            ],
        )

    panels = [
        panel("rank", 0, "rank, total\n(lower is better)"),
        panel("hr@10_sampled", 1, "HR@10 of 101, total\n(higher is better)"),
    ]
    plot_dots(title, [result.trial.name for result in results], [panels], path)
