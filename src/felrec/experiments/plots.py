"""Dot plots of the experiments, in the style of the other plots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from felrec.evaluation.plots import COLOURS, GREY, MARKERS, new_figure, save_figure


@dataclass(frozen=True)
class Series:
    """One value for each row, or None."""

    label: str
    values: Sequence[float | None]
    colour: str = COLOURS[0]
    marker: str = MARKERS[0]
    filled: bool = True


@dataclass(frozen=True)
class Panel:
    """Series that share one set of axes, under a title."""

    title: str
    series: Sequence[Series]


def plot_dots(
    title: str, names: Sequence[str], rows: Sequence[Sequence[Panel]], path: Path, *, joined: bool = False
) -> None:
    """Plot a dot for each row and series, with row names on the left; `joined` connects the dots of a row."""
    columns = len(rows[0])
    height = 1.1 + len(rows) * (0.75 + 0.24 * len(names))
    figure, every = new_figure(2.2 + 2.6 * columns, height, rows=len(rows), columns=columns, squeeze=False, sharey=True)
    for line, panels in zip(every, rows, strict=True):
        for axes, panel in zip(line, panels, strict=True):
            _dots(axes, panel, len(names), joined=joined)
    every[0][0].set_yticks(range(len(names)), names)
    every[0][0].set_ylim(len(names) - 0.5, -0.5)
    if len(rows[0][0].series) > 1:
        handles, labels = every[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=min(4, len(labels)), frameon=False)
    figure.suptitle(title, fontsize=11, x=0.01, ha="left")
    save_figure(figure, path)


def _dots(axes: object, panel: Panel, names: int, *, joined: bool) -> None:
    from matplotlib.axes import Axes

    assert isinstance(axes, Axes)
    values = np.array([[np.nan if v is None else v for v in series.values] for series in panel.series])
    if joined:
        for place in np.flatnonzero(np.isfinite(values).all(axis=0)).tolist():
            axes.plot(values[:, place], [place] * len(values), color="#BBBBBB", linewidth=1.5, zorder=1)
    for series, numbers in zip(panel.series, values, strict=True):
        face = series.colour if series.filled else "white"
        axes.scatter(
            numbers, range(names), s=34, marker=series.marker, color=series.colour, facecolor=face, zorder=2,
            label=series.label,
        )  # fmt: skip
    first = values[0]
    for place in range(names):
        if not np.isfinite(first[place]):
            axes.annotate("—", (0, place), (3, 0), textcoords="offset points", va="center", color=GREY, fontsize=8)
        elif len(panel.series) == 1:
            axes.annotate(
                f"{first[place]:.3f}", (first[place], place), (6, 0), textcoords="offset points", va="center",
                fontsize=7, color="#333333",
            )  # fmt: skip
    top = np.nanmax(values) if np.isfinite(values).any() else 1.0
    room = 1.28 if len(panel.series) == 1 else 1.06  # for the numbers beside the dots
    axes.set_xlim(0 - 0.04 * top, max(top * room, 1e-3))
    axes.set_title(panel.title, fontsize=9, loc="left")
    axes.tick_params(axis="y", length=0)
