"""Rows that cannot be read: which, why, and what becomes of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from felrec.data.lazy_polars import pl
from felrec.errors import DataError

_NAMED = 3  # rows of a fault that a message names


class BadRows(DataError):
    """Values of a column that cannot be read; the message names the first."""

    def __init__(self, column: pl.Series, bad: pl.Series, role: str, what: str) -> None:
        first = int(bad.arg_true()[0])
        value = "" if column[first] in (None, "") else f" {column[first]!r}"[:60]
        self.bad = bad
        self.reason = f"the {role} in column '{column.name}' {what}"
        self.example = f"the {role}{value} in column '{column.name}' {what}"
        super().__init__(f"row {first + 1}: {self.example}")


@dataclass(frozen=True)
class Fault:
    """Rows that have the same problem."""

    rows: NDArray[np.int64]  # of the frame, ascending
    reason: str
    example: str  # the reason, with the value of the first row
    lines: tuple[str, ...] | None = None  # the text of the rows, if it has no columns


@dataclass(frozen=True)
class Origin:
    """Where the rows of a frame come from: one source, or several files one after the other.

    >>> origin = Origin.of("logs", ["a.csv", "b.csv"], [2, 3])
    >>> origin.places([0, 1]), origin.places([1, 2, 3, 4])
    ('row 1 of a.csv, row 2 of a.csv', 'row 2 of a.csv, row 1 of b.csv, row 2 of b.csv and 1 more')
    """

    name: str  # as the user gave it
    files: tuple[str, ...]
    ends: NDArray[np.int64]  # (F,) rows up to the end of each file

    @classmethod
    def of(cls, name: str, files: Sequence[str], heights: Sequence[int]) -> Origin:
        """From the number of rows of each file."""
        return cls(name, tuple(files), np.cumsum(heights, dtype=np.int64))

    @property
    def height(self) -> int:
        """The number of rows."""
        return int(self.ends[-1])

    def numbers(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """For each row, its file and its number there, from 1."""
        file = np.searchsorted(self.ends, rows, side="right")
        return file, rows - np.concatenate([[0], self.ends])[file] + 1

    def places(self, rows: Sequence[int] | NDArray[np.int64]) -> str:
        """Name the first rows, and count the others."""
        file, number = (part.tolist() for part in self.numbers(np.asarray(rows[:_NAMED], dtype=np.int64)))
        more = f" and {len(rows) - _NAMED:,} more" if len(rows) > _NAMED else ""
        if len(self.files) > 1:
            return ", ".join(f"row {n:,} of {self.files[at]}" for at, n in zip(file, number, strict=True)) + more
        return f"row{'s' * (len(rows) > 1)} {', '.join(f'{n:,}' for n in number)}{more}"


def described(faults: Sequence[Fault], origin: Origin) -> tuple[str, ...]:
    """Of each fault the first rows, and what is wrong with them."""
    ordered = sorted(faults, key=lambda fault: int(fault.rows[0]))
    return tuple(f"{origin.places(fault.rows)}: {fault.example}" for fault in ordered)
