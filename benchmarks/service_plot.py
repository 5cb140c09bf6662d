"""The plot of benchmarks/service.py: those of rates, latencies, memory and overload that were measured."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

BLUE, ORANGE, GREY = "#3465a4", "#d9822b", "#888888"


def draw(curves: dict[str, Any], path: Path) -> None:
    """One panel per kind of measurement."""
    panels: list[Callable[[Axes], None]] = []
    if "rates" in curves:
        panels.append(lambda axes: _rates(axes, curves["rates"]))
    latencies = {name: values for name, values in curves.items() if name.startswith(("recommendations", "posts"))}
    if latencies:
        panels.append(lambda axes: _latencies(axes, latencies))
    if "memory" in curves:
        panels.append(lambda axes: _memory(axes, curves["memory"]))
    if "overload" in curves:
        panels.append(lambda axes: _overload(axes, *curves["overload"]))
    mpl.use("Agg")
    figure = Figure(figsize=(5.2 * max(1, len(panels)), 3.8), layout="constrained")
    for number, panel in enumerate(panels, start=1):
        panel(figure.add_subplot(1, len(panels), number))
    figure.savefig(path, dpi=150)


def _rates(axes: Axes, rates: list[tuple[str, float, float]]) -> None:
    names = [name for name, _, _ in rates]
    axes.barh(names, [rate for _, rate, _ in rates], color=BLUE, label="measured")
    axes.plot([goal for _, _, goal in rates], names, "|", color=ORANGE, markersize=22, markeredgewidth=3, label="goal")
    axes.set(title="Durable events", xlabel="events/s (model, events a history)")
    axes.legend()


def _latencies(axes: Axes, latencies: dict[str, list[float]]) -> None:
    axes.set(xscale="log", yscale="log", title="Latency", xlabel="milliseconds", ylabel="share that took longer")
    for name, values in latencies.items():
        ordered = np.sort(values)
        axes.plot(ordered, 1 - np.arange(len(ordered)) / len(ordered), label=name)
    axes.axhline(0.01, color=GREY, linewidth=0.8)
    axes.annotate("p99", (0.99, 0.01), xycoords=("axes fraction", "data"), color=GREY, ha="right", va="bottom")
    for which in (axes.xaxis, axes.yaxis):
        which.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.legend()


def _memory(axes: Axes, memory: list[tuple[float, float]]) -> None:
    axes.plot([at / 60 for at, _ in memory], [mb for _, mb in memory], color=BLUE)
    axes.set(title="Memory, both loads", xlabel="minutes", ylabel="MB resident")
    axes.set_ylim(0, 1.2 * max(mb for _, mb in memory))


def _overload(axes: Axes, at: list[float], statuses: list[int], memory: list[tuple[float, float]], events: int) -> None:
    edges = np.arange(0.0, max(at) + 1.0, 1.0)
    for status, colour, label in ((200, BLUE, "taken"), (429, ORANGE, "answered 429")):
        times = [when for when, one in zip(at, statuses, strict=True) if one == status]
        axes.stairs(events * np.histogram(times, edges)[0], edges, color=colour, label=f"events {label}")
    beside = axes.twinx()
    beside.plot([when for when, _ in memory], [mb for _, mb in memory], color=GREY, linestyle=":")
    beside.set_ylim(0, 1.2 * max(mb for _, mb in memory))
    beside.set_ylabel("MB resident (dotted)")
    axes.set(title="Three times what it can take", xlabel="seconds", ylabel="events a second")
    axes.legend()
