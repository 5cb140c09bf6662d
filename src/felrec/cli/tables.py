"""Tables and number formats: rich on a terminal, plain and unwrapped in a pipe."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from felrec.evaluation.report import Report

PIPE_WIDTH = 1000  # columns; wide enough that no table wraps in a pipe or a file
NONE = "—"
COLUMNS = ("rank", "hr@10_sampled", "hr@10", "ndcg@10", "mrr")
PAPER_LABEL = "(published protocol: leaks, do not compare with online)"


def output() -> Console:
    """Return the console for results, on stdout."""
    as_they_are: dict[str, Any] = {"highlight": False, "markup": False, "emoji": False, "soft_wrap": True}
    console = Console(**as_they_are)
    return console if console.is_terminal else Console(**as_they_are, width=PIPE_WIDTH)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str] | None], left: int = 1) -> None:
    """Print a table: the first `left` columns are left-aligned, the others right-aligned; None is an empty row."""
    console = output()
    table = Table(box=box.SIMPLE_HEAD if console.is_terminal else None, pad_edge=False, padding=(0, 2, 0, 0))
    for place, name in enumerate(columns):
        table.add_column(name, justify="left" if place < left else "right", no_wrap=not console.is_terminal)
    for row in rows:
        table.add_row(*(row if row is not None else [""] * len(columns)))
    console.print(table, soft_wrap=False)


def share(value: float) -> str:
    """Format a share as a percentage.

    >>> share(0.0314)
    '3.1 %'
    """
    return f"{100 * value:.1f} %"


def number(value: float | None) -> str:
    """Format a metric with three decimals, or a dash for None.

    >>> number(0.12345), number(None)
    ('0.123', '—')
    """
    return NONE if value is None else f"{value:.3f}"


def headline(report: Report) -> str:
    """The conditions of an evaluation, in one line above its numbers."""
    protocol = f"protocol {report.protocol}" + (f" {PAPER_LABEL}" if report.protocol == "paper" else "")
    if not report.has_usual_blocks:
        protocol += f" in blocks of {report.block}"
    seen = "seen items left out" if report.exclude_seen else "seen items ranked too"
    return ", ".join(
        (
            f"{report.model}: {protocol}",
            f"cache {report.cache}",
            seen,
            f"first events {share(report.first_events)}",
            f"{report.parameters:,} parameters",
            f"{report.seconds:.1f} s",
        )
    )


def print_report(report: Report) -> None:
    """Print one model: its headline and a row for each partition."""
    output().print(headline(report))
    rows = [(partition, *_cells(values)) for partition, values in _shown(report).items()]
    print_table(("partition", "events", "share", *COLUMNS), rows)


def print_reports(reports: Sequence[Report]) -> None:
    """Print several models: their headlines, then one table grouped by partition."""
    for report in reports:
        output().print(headline(report))
    shown = {report.model: report.partitions for report in reports}
    partitions = list(dict.fromkeys(name for report in reports for name in _shown(report)))
    rows: list[Sequence[str] | None] = []
    for partition in partitions:
        rows += [(partition, model, *_cells(values[partition])) for model, values in shown.items()]
        rows.append(None)
    print_table(("partition", "model", "events", "share", *COLUMNS), rows[:-1], left=2)


def ties_note(times: Any) -> str | None:
    """Return a note if 10 % or more of the events have the same time as the one before, else None."""
    ties = float((times[1:] == times[:-1]).mean()) if len(times) > 1 else 0.0
    if ties < 0.1:
        return None
    return (
        f"note: {share(ties)} of these events have the same time as the one before (a basket, or times in days);"
        " they are predicted one by one, in the log's order"
    )


def _shown(report: Report) -> dict[str, dict[str, Any]]:
    """All partitions; `total_representable` only if it differs from `total`."""
    partitions = report.partitions
    if partitions["total_representable"] == partitions["total"]:
        del partitions["total_representable"]
    return partitions


def _cells(values: dict[str, Any]) -> list[str]:
    return [f"{values['events']:,}", share(values["share"]), *(number(values[name]) for name in COLUMNS)]
