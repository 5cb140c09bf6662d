"""The published tables, shown beside our results."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any


@dataclass(frozen=True)
class Published:
    """One published table."""

    title: str  # of the log
    table: str
    source: str
    rows: dict[str, dict[str, Any]]  # by row name: parameters, and [rank, HR@10] by partition

    def pair(self, row: str, partition: str) -> tuple[float, float] | None:
        """The published rank and HR@10, or None."""
        pair = self.rows.get(row, {}).get(partition)
        return (pair[0], pair[1]) if pair else None


@cache
def published(name: str) -> Published:
    """The published table called `name`.

    >>> published("movielens-25m").pair("sasrec", "total")
    (0.031, 0.9239)
    """
    document = tomllib.loads((files("felrec.experiments") / "paper.toml").read_text(encoding="utf-8"))
    table = document[name]
    return Published(table["title"], table["table"], document["source"], table["rows"])
