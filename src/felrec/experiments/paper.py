"""The paper's tables, to be printed beside ours."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any


@dataclass(frozen=True)
class Published:
    """One table of the paper."""

    title: str  # of the log
    table: str
    source: str
    rows: dict[str, dict[str, Any]]  # by the name of our row: parameters, and [rank, HR@10] by partition

    def pair(self, row: str, partition: str) -> tuple[float, float] | None:
        """The published rank and HR@10, if there are any."""
        pair = self.rows.get(row, {}).get(partition)
        return (pair[0], pair[1]) if pair else None


@cache
def published(name: str) -> Published:
    """A table by name.

    >>> published("movielens-25m").pair("sasrec", "total")
    (0.031, 0.9239)
    """
    document = tomllib.loads((files("felrec.experiments") / "paper.toml").read_text(encoding="utf-8"))
    table = document[name]
    return Published(table["title"], table["table"], document["source"], table["rows"])
