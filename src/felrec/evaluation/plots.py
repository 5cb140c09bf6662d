"""Plots of evaluation reports, as PNG or SVG by the extension of the path."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from felrec.errors import ConfigError, how_to_install
from felrec.evaluation.report import Report

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The Okabe-Ito palette, safe for colour-blind readers, without its yellow, which is too pale on white.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
SHOWN = ("observed", "new_users", "new_items", "total")
GREY = "#666666"


def require_matplotlib() -> None:
    """Raise ConfigError if matplotlib is missing; called before hours of training."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise ConfigError(f"plots need matplotlib; {how_to_install('plots')}") from None


def plot_partitions(reports: Sequence[Report], path: Path) -> None:
    """Plot bars of hr@10 and of the normalised rank by partition, one colour per model."""
    figure, (left, right) = new_figure(11, 4.2, columns=2)
    for axes, metric, title in (
        (left, "hr@10", "hr@10: target in the top ten (higher is better)"),
        (right, "rank", "normalised rank (lower is better)"),
    ):
        for place, report in enumerate(reports):
            _bars(axes, report, metric, place, len(reports))
        axes.set_title(title, fontsize=10, loc="left")
        axes.set_xticks(range(len(SHOWN)), [_partition_label(reports[0], name) for name in SHOWN])
        axes.margins(y=0.12)
        axes.grid(axis="x", visible=False)
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(4, len(reports)), frameon=False)
    figure.suptitle(_protocol_title(reports), fontsize=11, x=0.01, ha="left")
    save_figure(figure, path)


def age_bins(ages: NDArray[np.int64]) -> NDArray[np.int64]:
    """Doubling bins: 0 holds 0, 1 holds 1, 2 holds 2–3, 3 holds 4–7, and so on.

    >>> age_bins(np.array([0, 1, 2, 3, 4, 7, 8])).tolist()
    [0, 1, 2, 2, 3, 3, 4]
    """
    return np.frexp(ages)[1].astype(np.int64)


def age_label(place: int) -> str:
    """The label of a bin.

    >>> [age_label(place) for place in range(5)]
    ['0', '1', '2–3', '4–7', '8–15']
    """
    if place < 2:
        return str(place)
    low, high = 2 ** (place - 1), 2**place - 1
    return f"{low}–{high}" if high < 10_000 else f"{low / 1000:.0f}k–"


def new_figure(width: float, height: float, *, rows: int = 1, columns: int = 1, **grid: Any) -> tuple[Figure, Any]:
    """Create a figure and its axes in the style of all plots."""
    require_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    every = figure.subplots(rows, columns, **grid)
    for axes in np.atleast_1d(every).flat:
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="both", color="#DDDDDD", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.tick_params(labelsize=9)
    return figure, every


def _bars(axes: Axes, report: Report, metric: str, place: int, models: int) -> None:
    width = 0.8 / models
    partitions = report.partitions
    for position, name in enumerate(SHOWN):
        value = partitions[name][metric]
        x = position + (place - (models - 1) / 2) * width
        axes.bar(x, value or 0.0, width * 0.92, color=COLOURS[place % 7], label=report.model if position == 0 else None)
        if models <= 4 or value is None:
            text = "—" if value is None else f"{value:.3f}"
            axes.annotate(
                text, (x, value or 0.0), (0, 2), textcoords="offset points", ha="center", fontsize=7, color="#333333"
            )


def _partition_label(report: Report, name: str) -> str:
    return f"{name.replace('_', ' ')}\n{100 * report.partitions[name]['share']:.1f} % of events"


def _protocol_title(reports: Sequence[Report]) -> str:
    leaks = any(report.protocol == "paper" for report in reports)
    return "Published protocol: leaks, do not compare with online" if leaks else "Test events, protocol online"


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure as PNG or SVG by the extension of the path; creates its directory."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
