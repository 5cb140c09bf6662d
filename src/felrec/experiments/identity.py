"""Where the published model's vectors get their identity from: dropout noise, or seeds.

With a zero cache, two histories of the same length look alike. In training, dropout makes each encoding different, and
the cache keeps it: from then on an item can be recognised by its noise. A replay in evaluation mode has no noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from torch import Tensor

from felrec.abilities import Representing
from felrec.comparison.trials import Trial
from felrec.errors import ConfigError
from felrec.evaluation.plots import COLOURS
from felrec.evaluation.protocols import replay
from felrec.experiments.markdown import MarkdownTable, number
from felrec.experiments.outcome import Outcome
from felrec.experiments.plots import Panel, Series, plot_dots
from felrec.experiments.runner import ExperimentRunner, Result
from felrec.experiments.scale import Data

STARTS: tuple[Literal["kept", "reset"], ...] = ("kept", "reset")
VARIANTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("zero cache, dropout 0.1", {"cache": "zero", "dropout": 0.1}),
    ("zero cache, no dropout", {"cache": "zero", "dropout": 0.0}),
    ("seeded cache, dropout 0.1", {"cache": "seeded", "dropout": 0.1}),
    ("seeded cache, no dropout", {"cache": "seeded", "dropout": 0.0}),
)
METRICS = ("rank", "hr@10", "mrr")


@dataclass(frozen=True)
class Row:
    """A trained variant, tested with the cache that training left and with a cache replayed without dropout."""

    name: str
    results: dict[str, Result]
    spreads: dict[str, float]

    def to_json(self) -> dict[str, Any]:
        """Return a dictionary of plain values."""
        reports = {start: result.report.to_json() for start, result in self.results.items()}
        return {"variant": self.name, "reports": reports, "spread": self.spreads}


def identity(runner: ExperimentRunner, data: Sequence[Data], other: Data | None) -> Outcome:
    """How much of the vectors is dropout noise: cache kept or reset, with and without dropout, zero or seeded."""
    log, model = data[0], _model(runner)
    rows = [_row(runner, model, name, variant, log) for name, variant in VARIANTS]
    notes = [
        f"{model}, scored from the projections, which its loss trains; protocol `online`, total",
        "kept: the cache that training left, with dropout noise in it; reset: the log replayed with the same weights"
        " in evaluation mode, which has no noise",
        "spread: mean of 1 - cosine over pairs of items, of their cached vectors when the test starts; 0: all alike",
    ]
    title = f"Identity in the vectors, on {log.name}"
    told = {"model": model, "rows": [row.to_json() for row in rows]}
    return Outcome(title, notes, [_table(rows)], told, {title: partial(_plot, rows, title)})


def _model(runner: ExperimentRunner) -> str:
    for name in runner.chosen(("felrec-q",)):
        if name in ("felrec-q", "felrec-p"):
            return name
    raise ConfigError("identity needs felrec-q or felrec-p; add one of them to --models")


def _row(runner: ExperimentRunner, model: str, name: str, variant: dict[str, Any], log: Data) -> Row:
    trial = runner.trial(model, name, **variant, score_from="projections")
    results: dict[str, Result] = {start: runner.result(replace(trial, cache=start), log) for start in STARTS}
    return Row(name, results, _spreads(runner, trial, log))


def _spreads(runner: ExperimentRunner, trial: Trial, log: Data) -> dict[str, float]:
    recommender = runner.trained(trial, log)[0].recommender
    assert isinstance(recommender, Representing)
    events = log.split.log[: log.split.validation_end]
    items = np.unique(events.items).astype(np.int32)
    kept = spread(recommender.item_vectors(items))
    recommender.reset()
    replay(recommender, events)
    return {"kept": kept, "reset": spread(recommender.item_vectors(items))}


def spread(vectors: Tensor) -> float:
    """Mean of 1 - cosine over all pairs of different unit vectors (C, D), from the length of their sum."""
    count, exact = len(vectors), vectors.double()
    return 1 - float(exact.sum(dim=0).square().sum() - exact.square().sum()) / (count * (count - 1))


def _table(rows: Sequence[Row]) -> MarkdownTable:
    columns = ["variant", *(f"{start}: {' / '.join(METRICS)}" for start in STARTS), "spread kept", "spread reset"]
    lines = []
    for row in rows:
        cells = [" / ".join(number(row.results[start].report.metric(metric)) for metric in METRICS) for start in STARTS]
        lines.append((row.name, *cells, *(number(row.spreads[start]) for start in STARTS)))
    return MarkdownTable("Each variant is trained once and tested from both caches", columns, lines)


def _plot(rows: Sequence[Row], title: str, path: Path) -> None:
    panels = [
        Panel(
            f"{metric}, total\n({better} is better)",
            [
                Series(start, [row.results[start].report.metric(metric) for row in rows], COLOURS[at], filled=at == 0)
                for at, start in enumerate(STARTS)
            ],
        )
        for metric, better in (("rank", "lower"), ("hr@10", "higher"))
    ]
    plot_dots(title, [row.name for row in rows], [panels], path, joined=True)
