"""Rows as they were read from files, before ids and times are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from felrec.data.lazy_polars import pl
from felrec.data.reading.columns import Columns, Wanted
from felrec.data.reading.faults import Fault, Origin
from felrec.data.reading.where import Condition


@dataclass(frozen=True)
class RawColumns:
    """A frame as read; with `is_text` all columns are strings, even integers."""

    frame: pl.DataFrame
    is_text: bool = False
    broken: tuple[Fault, ...] = ()  # lines that have no columns; the frame has an empty row for each


Reader: TypeAlias = Callable[[Path, Wanted], RawColumns]


@dataclass(frozen=True)
class RawLog:
    """The columns of a whole log as they were read, and where each row is from."""

    frame: pl.DataFrame
    columns: Columns
    origin: Origin
    where: tuple[Condition, ...] = ()
    is_text: bool = False
    broken: tuple[Fault, ...] = ()
