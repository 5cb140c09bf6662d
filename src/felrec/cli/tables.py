"""Tables and number formats: rich on a terminal, plain and unwrapped in a pipe."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.table import Table

from felrec.evaluation.text import COLUMNS, cells, share

if TYPE_CHECKING:
    from felrec.evaluation.report import Report

PIPE_WIDTH = 1000  # columns; wide enough that no table wraps in a pipe or a file


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


def print_report(report: Report) -> None:
    """Print one model: its headline, a row for each partition, and the metrics at each k that was asked for."""
    output().print(report.headline)
    print_table(("partition", *COLUMNS), [(name, *cells(values)) for name, values in report.shown().items()])
    if report.k:
        output().print()
        print_table(("metric", *(f"@{k}" for k in report.k)), report.rows_at_k())


def print_reports(reports: Sequence[Report]) -> None:
    """Print several models: their headlines, then one table grouped by partition, and one of the metrics at each k."""
    for report in reports:
        output().print(report.headline)
    shown = {report.model: report.partitions for report in reports}
    partitions = list(dict.fromkeys(name for report in reports for name in report.shown()))
    groups = [
        [(partition, model, *cells(values[partition])) for model, values in shown.items()] for partition in partitions
    ]
    print_table(("partition", "model", *COLUMNS), _separated(groups), left=2)
    if reports[0].k:
        output().print()
        at_k = zip(*(report.rows_at_k() for report in reports), strict=True)  # by metric, then by model
        named = [[(row[0], report.model, *row[1:]) for row, report in zip(rows, reports, strict=True)] for rows in at_k]
        print_table(("metric", "model", *(f"@{k}" for k in reports[0].k)), _separated(named), left=2)


def _separated(groups: Iterable[Sequence[Sequence[str]]]) -> list[Sequence[str] | None]:
    """The rows of all groups, with an empty row between two groups."""
    return [row for group in groups for row in (*group, None)][:-1]


def ties_note(times: Any) -> str | None:
    """Return a note if 10 % or more of the events have the same time as the one before, else None."""
    ties = float((times[1:] == times[:-1]).mean()) if len(times) > 1 else 0.0
    if ties < 0.1:
        return None
    return (
        f"note: {share(ties)} of these events have the same time as the one before (a basket, or times in days);"
        " they are predicted one by one, in the log's order"
    )
