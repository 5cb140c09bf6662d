"""What a log says of its events beside user, item and time: their kinds and values, in short."""

from __future__ import annotations

from dataclasses import dataclass

from felrec.data.lazy_polars import pl
from felrec.data.reading.columns import Columns

_MOST_KINDS = 50  # a column with more values holds something else


@dataclass(frozen=True)
class Kinds:
    """How many events are of each kind, such as view or purchase; the most frequent first."""

    column: str
    counts: dict[str, int]


@dataclass(frozen=True)
class Values:
    """The range of a column of numbers, such as ratings."""

    column: str
    lowest: float
    median: float
    highest: float


def kinds_of(frame: pl.DataFrame, columns: Columns) -> Kinds | None:
    """Count the kinds; None if no column holds them."""
    if columns.kind is None or frame[columns.kind].dtype.is_nested():
        return None
    counted = frame[columns.kind].cast(pl.String, strict=False).fill_null("").value_counts(sort=True)
    if counted.height > _MOST_KINDS:
        return None
    return Kinds(columns.kind, dict(counted.iter_rows()))


def values_of(frame: pl.DataFrame, columns: Columns) -> Values | None:
    """The range of the values; None if no column holds numbers."""
    if columns.value is None or frame[columns.value].dtype.is_nested():
        return None
    texts = frame[columns.value].cast(pl.String, strict=False).str.replace(",", ".", literal=True)
    numbers = texts.cast(pl.Float64, strict=False).drop_nulls().drop_nans()
    if not len(numbers):
        return None
    lowest, median, highest = (numbers.quantile(share) or 0.0 for share in (0, 0.5, 1))
    return Values(columns.value, lowest, median, highest)
