"""The paper's figure on popularity bias, with numbers, which the paper does not give."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from felrec.abilities import Representing
from felrec.comparison.trials import Trial
from felrec.evaluation.plots import new_figure, save_figure
from felrec.evaluation.report import resolve_exclude_seen
from felrec.experiments.exposure import DECILES, exposure, taken
from felrec.experiments.markdown import MarkdownTable, number
from felrec.experiments.outcome import Outcome
from felrec.experiments.runner import ExperimentRunner
from felrec.experiments.scale import Data
from felrec.experiments.taste_map import INTERACTIONS, TasteMap, plot_maps, require_tsne, taste_map
from felrec.files import write_atomically

MAPPED = ("sasrec", "felrec-q", "felrec-s")
TAKEN = "what users took"


def popularity_bias(runner: ExperimentRunner, data: Sequence[Data], other: Data | None) -> Outcome:
    """t-SNE maps of users and items; recommendations by popularity, Gini coefficient and coverage."""
    require_tsne()
    log = data[0]
    leave_out = resolve_exclude_seen("auto", log.split)
    rows: dict[str, dict[str, Any]] = {TAKEN: taken(log.split).to_json()}
    maps: dict[str, TasteMap] = {}
    for name in runner.chosen():
        trial = runner.trial(name)
        runner.result(trial, log)
        rows[name] = _exposed(runner, trial, log, exclude_seen=leave_out)
        if name in MAPPED and (found := _mapped(runner, trial, log)):
            maps[name] = found
    title, plots = f"Popularity bias, on {log.name}", {}
    drawn = min(INTERACTIONS, log.split.validation_end)
    if maps:
        shows = f"t-SNE of users and items, coloured by their match with one interaction, on {log.name}"
        plots[shows] = partial(plot_maps, maps, f"Users and items of {drawn:,} interactions, on {log.name}")
    plots[f"Share of recommendations by popularity, on {log.name}"] = partial(_plot_deciles, rows, title)
    return Outcome(title, _notes(drawn, exclude_seen=leave_out), [_table(rows)], {"rows": rows}, plots)


def _notes(drawn: int, *, exclude_seen: bool) -> list[str]:
    seen = "excluded" if exclude_seen else "included"
    return [
        f"the ten best items of every test event, protocol `online`; items the user already had are {seen}",
        "popularity is the number of events so far; decile 1 is the most popular tenth of the catalogue",
        "Gini: 0 if all items are recommended equally often, near 1 if a few get all recommendations; coverage: share"
        f" of the catalogue recommended at least once; '{TAKEN}' is the same for the test events themselves",
        f"maps: users and items of {drawn:,} random interactions before the test, each once, placed by t-SNE; red: a"
        " user and an item of their history that is in their top tenth. The paper (Weimann and Conrad, arXiv"
        " 2210.16928) has such maps of FELRec and SASRec, without numbers",
    ]


def _exposed(runner: ExperimentRunner, trial: Trial, log: Data, *, exclude_seen: bool) -> dict[str, Any]:
    """The exposure of a trial; computed once and kept in its run directory."""
    file = runner.folder(trial, log) / "exposure.json"
    if not file.exists():
        model = runner.before_test(trial, log)
        with runner.reporter.evaluating(f"{trial.name}, exposure", len(log.split.test)) as progress:
            found = exposure(model.recommender, log.split, exclude_seen=exclude_seen, progress=progress)
        write_atomically(file, json.dumps(found.to_json()) + "\n")
    told: dict[str, Any] = json.loads(file.read_text())
    return told


def _mapped(runner: ExperimentRunner, trial: Trial, log: Data) -> TasteMap | None:
    """The map of a trial; computed once and kept in its run directory; None for a model without vectors."""
    file = runner.folder(trial, log) / "map.parquet"
    if not file.exists():
        model = runner.before_test(trial, log).recommender
        if not isinstance(model, Representing):
            return None
        taste_map(model, log.split).save(file)
    return TasteMap.load(file)


def _table(rows: dict[str, dict[str, Any]]) -> MarkdownTable:
    columns = ("model", "Gini", "coverage", *(f"decile {place}" for place in range(1, DECILES + 1)))
    lines = [
        (name, number(row["gini"]), number(row["coverage"]), *(number(share) for share in row["deciles"]))
        for name, row in rows.items()
    ]
    return MarkdownTable(
        "Gini coefficient, catalogue coverage, and share of recommendations by popularity", columns, lines
    )


def _plot_deciles(rows: dict[str, dict[str, Any]], title: str, path: Path) -> None:
    """Plot stacked bars, dark for the most popular tenth, with Gini and coverage on the right."""
    from matplotlib import colormaps

    names = list(rows)
    figure, (left, right) = new_figure(11, 1.8 + 0.3 * len(names), columns=2, width_ratios=(3, 1), sharey=True)
    shares = np.array([rows[name]["deciles"] for name in names])
    starts = np.cumsum(shares, axis=1) - shares
    for place in range(DECILES):
        shade = colormaps["viridis"](place / (DECILES - 1))
        left.barh(names, shares[:, place], left=starts[:, place], color=shade, height=0.7, label=str(place + 1))
    left.set_ylim(len(names) - 0.5, -0.5)
    left.set_xlim(0, 1)
    left.set_xlabel("share of recommendations, by popularity decile of the item (1: most popular)")
    left.grid(visible=False)
    for key, colour, marker in (("gini", "#0072B2", "o"), ("coverage", "#D55E00", "s")):
        right.scatter([rows[name][key] for name in names], names, color=colour, marker=marker, label=key)
    right.set_xlim(-0.03, 1.03)
    right.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=2)
    right.tick_params(axis="y", length=0)
    left.legend(frameon=False, fontsize=8, ncols=DECILES, loc="lower left", bbox_to_anchor=(0, 1), handlelength=1)
    figure.suptitle(title, fontsize=11, x=0.01, ha="left")
    save_figure(figure, path)
