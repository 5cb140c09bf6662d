"""Tables and numbers in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

NONE = "—"
METRICS = ("rank", "hr@10_sampled", "hr@10")
CELL = "rank / HR@10 of 101 / hr@10"
PAPER_CELL = "rank / HR@10 of 101"


@dataclass(frozen=True)
class MarkdownTable:
    """A caption, a head and rows of text; the first `left` columns stand left, the others right."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: int = 1

    def markdown(self) -> str:
        """The table as Markdown.

        >>> print(MarkdownTable("Two", ("model", "rank"), [("a", "0.1")]).markdown())
        **Two**
        <BLANKLINE>
        | model | rank |
        |---|---:|
        | a | 0.1 |
        """
        rule = ["---"] * self.left + ["---:"] * (len(self.columns) - self.left)
        lines = [self.columns, *self.rows]
        written = [f"| {' | '.join(line)} |" for line in lines]
        written.insert(1, f"|{'|'.join(rule)}|")
        return "\n".join([f"**{self.caption}**", "", *written])


def number(value: float | None, digits: int = 3) -> str:
    """Write a number, or a dash for none.

    >>> number(0.12345), number(None), number(1234.5, 0)
    ('0.123', '—', '1,234')
    """
    return NONE if value is None else f"{value:,.{digits}f}"


def millions(value: float | None) -> str:
    """Write a number of parameters as the paper does.

    >>> millions(479_488), millions(0), millions(None)
    ('0.48M', '0', '—')
    """
    if value is None:
        return NONE
    return f"{value / 1e6:.2f}M" if value >= 5_000 else f"{value:.0f}"


def cell(values: dict[str, Any]) -> str:
    """Rank, sampled HR@10 and hr@10 of a partition of a report."""
    if values["rank"] is None:
        return NONE
    return " / ".join(number(values[metric]) for metric in METRICS)


def paper_cell(pair: tuple[float, float] | None) -> str:
    """A published rank and HR@10, which is the sampled one.

    >>> paper_cell((0.031, 0.9239)), paper_cell(None)
    ('0.031 / 0.9239', '—')
    """
    return NONE if pair is None else f"{pair[0]:.3f} / {pair[1]:.4f}"
