"""Read ids and times row by row: rows that cannot be read are refused together, or left out and counted."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from felrec.data.lazy_polars import pl
from felrec.data.reading.faults import BadRows, Fault, described
from felrec.data.reading.identifiers import read_ids
from felrec.data.reading.raw import RawLog
from felrec.data.reading.rejected import rejected_rows
from felrec.data.reading.timestamps import Ticks, read_times
from felrec.data.reading.where import matching_rows
from felrec.errors import ConfigError, DataError


@dataclass(frozen=True)
class BadRowRule:
    """What becomes of rows that cannot be read."""

    bad_rows: Literal["refuse", "skip"] = "refuse"
    max_bad: float = 0.05  # the largest share of rows to skip
    rejected: Path | None = None  # a CSV file to write them to, refused or skipped

    def __post_init__(self) -> None:
        if self.bad_rows not in ("refuse", "skip"):
            raise ConfigError(f"bad_rows={self.bad_rows!r}: give 'refuse' or 'skip'")
        if not 0 <= self.max_bad <= 1:
            raise ConfigError(f"max_bad={self.max_bad}: give a share from 0 to 1, such as 0.05 for 5 %")


@dataclass(frozen=True)
class SkippedRows:
    """The rows of a log that were left out."""

    count: int
    of: int
    reasons: tuple[str, ...]  # one for each kind of fault, with the first rows that have it

    def __str__(self) -> str:
        return f"left out {self.count:,} of {self.of:,} rows"


@dataclass(frozen=True)
class GoodRows:
    """Ids and times of the rows that could be read."""

    users: pl.Series
    items: pl.Series
    times: Ticks
    frame: pl.DataFrame  # all their columns
    skipped: SkippedRows | None


def read_good_rows(raw: RawLog, time_unit: str, rule: BadRowRule, wanted: NDArray[np.bool_] | None = None) -> GoodRows:
    """Read the `wanted` rows; DataError names those that cannot be read, unless they may be skipped."""
    faults, rows, frame = list(raw.broken), np.arange(raw.frame.height), raw.frame
    if raw.where:
        rows = matching_rows(frame, list(zip(raw.where, raw.columns.conditions, strict=True)), raw.origin.name)
    if wanted is not None:
        rows = rows[wanted[rows]]
    broken = np.concatenate([np.empty(0, np.int64), *(fault.rows for fault in faults)])
    rows = np.setdiff1d(rows, broken, assume_unique=True) if faults else rows
    asked = len(rows) + len(broken)
    if len(rows) < frame.height:
        frame = frame[rows]
    read = None
    while read is None and frame.height:
        try:
            read = _read(frame, raw, time_unit)
        except BadRows as bad:  # leave them out and read the others, which may have other faults
            wrong: NDArray[np.bool_] = bad.bad.to_numpy()
            faults.append(Fault(rows[wrong], bad.reason, bad.example))
            rows, frame = rows[~wrong], frame.filter(~bad.bad)
    if rule.rejected is not None:
        rejected_rows(raw, faults).write_csv(rule.rejected)
    skipped = SkippedRows(asked - len(rows), asked, described(faults, raw.origin))
    if read is None or skipped.count > (0 if rule.bad_rows == "refuse" else rule.max_bad * asked):
        raise _refusal(raw.origin.name, skipped, rule)
    return GoodRows(*read, frame, skipped if skipped.count else None)


def _read(frame: pl.DataFrame, raw: RawLog, time_unit: str) -> tuple[pl.Series, pl.Series, Ticks]:
    source, columns = raw.origin.name, raw.columns
    return (
        read_ids(frame[columns.user], "user", source, parse=raw.is_text),
        read_ids(frame[columns.item], "item", source, parse=raw.is_text),
        read_times(frame[columns.time], time_unit, source),
    )


def _refusal(source: str, bad: SkippedRows, rule: BadRowRule) -> DataError:
    """Say what is wrong, and how to go on without the rows if any others are left."""
    message = f"{source}: {'; '.join(bad.reasons)}"
    if bad.count == bad.of:
        return DataError(f"{message}; no row is left" if bad.of > 1 else message)
    limit = f" --max-bad {ceil(100 * bad.count / bad.of) / 100:g}" if bad.count > rule.max_bad * bad.of else ""
    skip = "" if rule.bad_rows == "skip" else " --bad-rows skip"
    them = "it" if bad.count == 1 else "them"
    return DataError(f"{message}; fix {them}, or leave out {bad.count:,} of {bad.of:,} rows with{skip}{limit}")
