"""What a measurement found."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """A line of the table."""

    what: str
    goal: str
    measured: str
    reached: bool | None  # None: the goal does not apply here
