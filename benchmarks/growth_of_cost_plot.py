"""The plot and the table of benchmarks/growth_of_cost.py."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

Results = dict[str, dict[str, float]]  # by "side/users/items"
STYLES = {"felrec": ("#3465a4", "o"), "item-kNN": ("#d9822b", "s"), "ALS": ("#4e9a06", "^"), "HNSW": ("#888888", "d")}
FIXED = 10_000


def points(results: Results, side: str, axis: str, cost: str) -> list[tuple[int, float]]:
    """Sizes and milliseconds of one line."""
    found = []
    for name, costs in results.items():
        its, users, items = name.split("/")
        size, other = (int(items), int(users)) if axis == "items" else (int(users), int(items))
        if its == side and other == FIXED and cost in costs:
            found.append((size, costs[cost]))
    return sorted(found)


def draw(results: Results, path: Path) -> None:
    """Answers and events against items and users, both axes logarithmic."""
    mpl.use("Agg")
    figure = Figure(figsize=(12, 7), layout="constrained")
    titles = {
        "answer": "one answer",
        "of 100": "one of 100 answers at once",
        "add": "adding an item (felrec: its first event)",
    }
    for row, axis in enumerate(("items", "users")):
        for column, (cost, title) in enumerate(titles.items()):
            axes = figure.add_subplot(2, 3, 3 * row + column + 1)
            _panel(axes, results, axis, cost)
            axes.set(title=title if row == 0 else "", xlabel=axis, ylabel="milliseconds of CPU" if column == 0 else "")
    figure.get_axes()[3].legend(loc="upper right")
    figure.savefig(path, dpi=150)


def _panel(axes: Axes, results: Results, axis: str, cost: str) -> None:
    axes.set(xscale="log", yscale="log", ylim=(0.003, 1_000), xlim=(700, 1.5e7))
    axes.grid(color="#dddddd", linewidth=0.6)
    for side, (colour, marker) in STYLES.items():
        line = points(results, side, axis, cost)
        axes.plot([size for size, _ in line], [cost for _, cost in line], color=colour, marker=marker, label=side)
    axes.yaxis.set_major_formatter("{x:g}")


def table(results: Results) -> str:
    """Milliseconds by size, as Markdown."""
    lines = []
    for axis in ("items", "users"):
        sizes = sorted({size for side in STYLES for size, _ in points(results, side, axis, "answer")})
        lines += [
            "",
            f"| {axis} | " + " | ".join(f"{size:,}" for size in sizes) + " |",
            "|---" * (len(sizes) + 1) + "|",
        ]
        for cost in ("answer", "of 100", "add", "answer p99", "answer worst"):
            for side in STYLES:
                values = dict(points(results, side, axis, cost))
                if values:
                    cells = [f"{values[size]:.3g}" if size in values else "" for size in sizes]
                    lines.append(f"| {side}, {cost} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
