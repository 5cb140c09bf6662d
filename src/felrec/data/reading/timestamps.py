"""Read times of any type as whole ticks or seconds since 1970 (UTC)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from felrec.data.events import BEGINNING, Times
from felrec.data.lazy_polars import pl
from felrec.data.reading.faults import BadRows
from felrec.errors import DataError

TICKS_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
TIME_UNITS = ("auto", *TICKS_PER_SECOND)

MILLISECONDS_FROM = 1e11  # as seconds this would be after the year 5000
_LARGEST_OF_UNIT = (("s", MILLISECONDS_FROM), ("ms", 1e14), ("us", 1e17))
_LAST_SECOND = 100_000_000_000 - 1  # in the year 5138; minutes must fit into 32 bits
_PLAUSIBLE = 946_684_800  # the year 2000: smaller numbers may count from another origin
_TOO_LATE = "is after the year 5138; check --time-unit and --time-col"
_WITH_OFFSET = ("%Y-%m-%dT%H:%M:%S%.f%#z", "%Y-%m-%d %H:%M:%S%.f%#z", "%Y-%m-%d %H:%M:%S%.f %#z")
_WITHOUT_OFFSET = (
    "%Y-%m-%d %H:%M:%S%.f",
    "%Y-%m-%dT%H:%M:%S%.f",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%dT%H:%M",
    "%Y/%m/%d %H:%M:%S%.f",
    "%Y-%m-%d %H:%M:%S%.f UTC",
)
_DATES = ("%Y-%m-%d", "%Y/%m/%d")


@dataclass(frozen=True)
class Ticks:
    """Times in the unit of their source: exact for integers, so that sorting loses no nanosecond."""

    values: NDArray[Any]  # (B,) int32, int64 or float64
    per_second: int

    def seconds(self) -> Times:
        """Return the times as float64 seconds, exact to about a quarter of a microsecond."""
        if self.per_second == 1:
            return self.values.astype(np.float64)
        return self.values / np.float64(self.per_second)


def read_times(column: pl.Series, unit: str = "auto", source: str = "frame") -> Ticks:
    """Read numbers, dates, datetimes (naive ones are UTC), or strings of either.

    Numbers count `unit`s since 1970; those before it are negative. With `auto` the largest one decides: below 1e11 it
    is seconds (until the year 5138), below 1e14 milliseconds, below 1e17 microseconds, else nanoseconds. Strings are
    ISO 8601 or numbers, with a decimal point or comma.

    >>> read_times(pl.Series([1_700_000_000_500])).seconds().tolist()
    [1700000000.5]
    >>> read_times(pl.Series(["1970-01-02", "1970-01-02T00:00:01.5+00:00"])).seconds().tolist()
    [86400.0, 86401.5]
    """
    if unit not in TIME_UNITS:
        raise DataError(f"{source}: unknown time unit {unit!r}; use one of {', '.join(TIME_UNITS)}")
    if column.null_count():
        raise BadRows(column, column.is_null(), "time", "is missing")
    if column.dtype == pl.String:
        column = _parsed(column)
    if isinstance(column.dtype, pl.Datetime):
        return _checked(column.to_physical(), TICKS_PER_SECOND[column.dtype.time_unit])
    if column.dtype == pl.Date:
        return _checked(column.cast(pl.Int64) * 86_400, 1)
    if not column.dtype.is_numeric():
        raise DataError(f"{source}: column '{column.name}' is {column.dtype}, not a time; name another with --time-col")
    return _numbers(column, unit)


def _numbers(column: pl.Series, unit: str) -> Ticks:
    if column.dtype.is_integer() and column.dtype != pl.Int32:
        narrow = column.cast(pl.Int64, strict=False)
        if narrow.null_count():
            raise BadRows(column, narrow.is_null(), "time", _TOO_LATE)
        column = narrow
    elif not column.dtype.is_integer():
        column = column.cast(pl.Float64)
        if not column.is_finite().all():
            raise BadRows(column, ~column.is_finite(), "time", "is not a finite number")
    return _checked(column, TICKS_PER_SECOND[_guessed_unit(column) if unit == "auto" else unit])


def _guessed_unit(column: pl.Series) -> str:
    """The unit of the number farthest from zero; BadRows for the fewer, if others are plausible in another unit."""
    smallest, largest = float(column.min() or 0), float(column.max() or 0)  # type: ignore[arg-type]
    unit, other = _unit_of(max(largest, -smallest)), _unit_of(abs(smallest))
    if other == unit or smallest < _PLAUSIBLE * TICKS_PER_SECOND[other]:
        return unit
    looks_smaller = column < dict(_LARGEST_OF_UNIT)[other]
    if 2 * int(looks_smaller.sum()) > len(column):
        raise BadRows(column, ~looks_smaller, "time", f"looks like {unit} where others look like {other}; fix it")
    raise BadRows(column, looks_smaller, "time", f"looks like {other} where others look like {unit}; fix it")


def _unit_of(number: float) -> str:
    return next((name for name, limit in _LARGEST_OF_UNIT if number < limit), "ns")


def _checked(column: pl.Series, per_second: int) -> Ticks:
    first = max(int(BEGINNING) * per_second, np.iinfo(np.int64).min)
    last = min(_LAST_SECOND * per_second, np.iinfo(np.int64).max)
    if (column.min() or 0) < first:  # type: ignore[operator]
        raise BadRows(column, column < first, "time", "is before the year 1; check --time-unit")
    if (column.max() or 0) > last:  # type: ignore[operator]
        raise BadRows(column, column > last, "time", _TOO_LATE)
    values = column.to_numpy()
    # Whole floats become integers (exact below 2**53), which sort faster.
    if (
        values.dtype.kind == "f"
        and np.abs(values).max(initial=0.0) < 2**53
        and bool(np.all(values == np.floor(values)))
    ):
        values = values.astype(np.int64)
    return Ticks(values, per_second)


def _parsed(column: pl.Series) -> pl.Series:
    """Parse strings as numbers or as datetimes; a column may not mix the two."""
    if column.str.contains(",", literal=True).any():
        column = column.str.replace(",", ".", literal=True)  # a decimal comma, also in the seconds of ISO 8601
    for kind in (pl.Int64, pl.Float64):
        numbers = column.cast(kind, strict=False)
        if not numbers.null_count():
            return numbers
    times = _iso(column)
    if not times.null_count():
        return times
    unread = numbers.is_null() & times.is_null()
    if unread.any():
        raise BadRows(column, unread, "time", "cannot be read; use ISO 8601 (2024-05-01 12:30:00) or a number")
    if 2 * times.null_count() > len(column):
        raise BadRows(column, numbers.is_null(), "time", "is a date among numbers; use one kind for the whole column")
    raise BadRows(column, times.is_null(), "time", "is a number among dates; use one kind for the whole column")


def _iso(column: pl.Series) -> pl.Series:
    """Try each format on the values that the formats before it could not parse."""
    times = pl.Series(column.name, [None], dtype=pl.Datetime("us")).new_from_index(0, len(column))
    for pattern in (*_WITHOUT_OFFSET, *_WITH_OFFSET, *_DATES):
        left = times.is_null().arg_true()
        if not len(left):
            break
        times = times.scatter(left, _parse(column.gather(left), pattern))
    return times


def _parse(texts: pl.Series, pattern: str) -> pl.Series:
    if pattern in _DATES:
        return texts.str.to_date(pattern, strict=False).cast(pl.Datetime("us"))
    times = texts.str.to_datetime(pattern, strict=False, time_unit="us")
    return times.dt.replace_time_zone(None)
