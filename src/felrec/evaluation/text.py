"""Reports and numbers as plain text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

NONE = "—"
_METRICS = ("rank", "hr@10_sampled", "hr@10", "ndcg@10", "mrr")
COLUMNS = ("events", "share", *_METRICS)  # of a table of partitions


def share(value: float) -> str:
    """Format a share as a percentage.

    >>> share(0.0314)
    '3.1 %'
    """
    return f"{100 * value:.1f} %"


def number(value: float | None) -> str:
    """Format a metric with three decimals, or a dash for None and NaN.

    >>> number(0.12345), number(None)
    ('0.123', '—')
    """
    return NONE if value is None or value != value else f"{value:.3f}"


def cells(values: dict[str, Any]) -> list[str]:
    """The `COLUMNS` of one partition."""
    return [f"{values['events']:,}", share(values["share"]), *(number(values[name]) for name in _METRICS)]


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Lines of columns: the first column is left-aligned, the others right-aligned.

    >>> print(aligned([("part", "mrr"), ("total", "0.5")]))
    part   mrr
    total  0.5
    """
    columns = [
        [cell.rjust(max(map(len, column))) if at else cell.ljust(max(map(len, column))) for cell in column]
        for at, column in enumerate(zip(*rows, strict=True))
    ]
    return "\n".join("  ".join(row).rstrip() for row in zip(*columns, strict=True))
