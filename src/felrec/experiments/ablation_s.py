"""Ablation of FELRec-S: how much each signal contributes, and what a sequence or vectors would add."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from felrec.evaluation.plots import COLOURS
from felrec.experiments.cost import cost_table, costs
from felrec.experiments.markdown import MarkdownTable, millions, number
from felrec.experiments.outcome import Outcome
from felrec.experiments.plots import Panel, Series, plot_dots
from felrec.experiments.runner import ExperimentRunner, Result
from felrec.experiments.scale import Data
from felrec.model.felrec_s_settings import DEFAULT_SIGNALS, SEQUENCE
from felrec.model.signals.signal_set import SignalName

MODEL = "felrec-s"
ABLATED: tuple[tuple[SignalName, ...], ...] = (
    ("repetition",),
    ("together",),
    ("follows",),
    ("ahead",),
    ("profile",),
    ("trend", "profile"),  # the profile needs the trend
)


def without(*names: SignalName) -> list[SignalName]:
    """The default signals but for some."""
    return [name for name in DEFAULT_SIGNALS if name not in names]


WITH_VECTORS: list[SignalName] = [*DEFAULT_SIGNALS, "vectors"]
VARIANTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("the default", {}),
    *((f"no {' or '.join(names)}", {"signals": without(*names)}) for names in ABLATED),
    ("with sequence", {"signals": SEQUENCE["signals"]}),
    ("with vectors", {"signals": WITH_VECTORS}),
    ("with vectors, no auxiliary loss", {"signals": WITH_VECTORS, "item_loss": 0.0}),
)
METRICS = ("rank", "hr@10", "mrr")


def ablation_s(runner: ExperimentRunner, data: Sequence[Data], other: Data | None) -> Outcome:
    """FELRec-S with one signal removed, with a sequence, or with vectors."""
    log = data[0]
    results = [runner.result(runner.trial(MODEL, name, **variant), log) for name, variant in VARIANTS]
    found = costs(results)
    told = {"rows": [result.report.to_json() for result in results], "costs": found}
    seen = "excluded" if results[0].report.exclude_seen else "included"
    title = f"FELRec-S with one signal removed or added, on {log.name}"
    notes = [f"protocol `online`, items the user already had are {seen}; FELRec-S is not in the paper"]
    plots = {f"FELRec-S with one signal removed or added, on {log.name}": partial(_plot, results, title)}
    return Outcome(title, notes, [_table(results), cost_table(found)], told, plots)


def _table(results: Sequence[Result]) -> MarkdownTable:
    partitions = ("total", "new_items", "new_users")
    columns = ["variant", "parameters", *(f"{name.replace('_', ' ')}: rank / hr@10 / mrr" for name in partitions)]
    rows = []
    for result in results:
        values = result.report.partitions
        cells = [" / ".join(number(values[name][metric]) for metric in METRICS) for name in partitions]
        rows.append((result.trial.name, millions(result.report.parameters), *cells))
    return MarkdownTable("Each row is trained separately", columns, rows)


def _plot(results: Sequence[Result], title: str, path: Path) -> None:
    panels = [
        Panel(label, [Series("felrec-s", [result.report.metric(metric) for result in results], COLOURS[0])])
        for metric, label in (("hr@10", "hr@10, total\n(higher is better)"), ("mrr", "mrr, total\n(higher is better)"))
    ]
    plot_dots(title, [result.trial.name for result in results], [panels], path)
