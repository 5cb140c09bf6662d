from __future__ import annotations

from datetime import date, datetime, timedelta, timezone

import numpy as np
import polars as pl
import pytest

from felrec.data.reading.timestamps import read_times
from felrec.errors import DataError

SECOND = 1_700_000_000


@pytest.mark.parametrize("factor", [1, 10**3, 10**6, 10**9])
def test_the_largest_number_decides_the_unit(factor: int) -> None:
    seconds = read_times(pl.Series([0, SECOND * factor])).seconds()
    assert seconds.tolist() == [0.0, float(SECOND)]
    assert seconds.dtype == np.float64


def test_a_named_unit_beats_the_guess() -> None:
    assert read_times(pl.Series([1_500]), "ms").seconds().tolist() == [1.5]
    with pytest.raises(DataError, match="unknown time unit 'min'; use one of auto, s, ms, us, ns"):
        read_times(pl.Series([1]), "min")


@pytest.mark.parametrize(
    "column",
    [
        pl.Series([SECOND], dtype=pl.Int32),
        pl.Series([float(SECOND)]),
        pl.Series([str(SECOND)]),
        pl.Series([f"{SECOND}.0"]),
        pl.Series([datetime(2023, 11, 14, 22, 13, 20)]),
        pl.Series([datetime(2023, 11, 14, 22, 13, 20)], dtype=pl.Datetime("ns")),
        pl.Series([datetime(2023, 11, 15, 0, 13, 20, tzinfo=timezone(timedelta(hours=2)))]),
        pl.Series(["2023-11-14 22:13:20"]),
        pl.Series(["2023-11-14T22:13:20.000"]),
        pl.Series(["2023-11-14T22:13:20Z"]),
        pl.Series(["2023-11-15 00:13:20+02:00"]),
        pl.Series(["2023-11-14 22:13:20 UTC"]),
        pl.Series(["2023-11-14 22:13:20,000"]),
        pl.Series([f"{SECOND},0"]),
    ],
)
def test_every_kind_of_time_is_the_same_second(column: pl.Series) -> None:
    assert read_times(column).seconds().tolist() == [float(SECOND)]


def test_dates_and_mixed_iso_strings() -> None:
    assert read_times(pl.Series([date(1970, 1, 3)])).seconds().tolist() == [172_800.0]
    texts = pl.Series(["1970-01-01", "1970-01-01T00:00:01", "1970/01/02", "1970-01-01 00:01"])
    assert read_times(texts).seconds().tolist() == [0.0, 1.0, 86_400.0, 60.0]


def test_times_before_1970_are_times() -> None:
    moon = -14_182_940.0  # 1969-07-20T20:17:40
    for column in (
        pl.Series(["1969-07-20T20:17:40"]),
        pl.Series([datetime(1969, 7, 20, 20, 17, 40)]),
        pl.Series([-14_182_940_000]),
        pl.Series([-14_182_940.0]),
    ):
        unit = "ms" if column.dtype == pl.Int64 else "auto"
        assert read_times(column, unit).seconds().tolist() == [moon]
    assert read_times(pl.Series([-(10**12), 5])).seconds().tolist() == [-(10.0**9), 0.005]


def test_nanoseconds_stay_exact_for_sorting() -> None:
    ticks = read_times(pl.Series([SECOND * 10**9 + 1, SECOND * 10**9]))
    assert ticks.values[0] - ticks.values[1] == 1


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pl.Series("ts", [1.0, float("nan")]), r"row 2: the time nan in column 'ts' is not a finite number"),
        (pl.Series("ts", [float("inf"), 1.0]), r"row 1: the time inf"),
        (pl.Series("ts", [1, None]), r"row 2: the time in column 'ts' is missing"),
        (pl.Series("ts", [1, -(10**11) + 1]), r"row 2: .* is before the year 1; check --time-unit"),
        (pl.Series("ts", ["10", "20", "soon"]), r"row 3: the time 'soon' in column 'ts' cannot be read; use ISO 8601"),
        (pl.Series("ts", ["2024-05-01", "2024-13-01"]), r"row 2: the time '2024-13-01'"),
        (pl.Series("ts", ["2024-05-01", "17"]), r"row 2: the time '17' .* is a number among dates"),
        (pl.Series("ts", [2**64 - 1], dtype=pl.UInt64), r"row 1: .* is after the year 5138"),
        (pl.Series("ts", [datetime(9999, 12, 31)]), r"row 1: .* is after the year 5138"),
        (pl.Series("ts", [SECOND * 1000, SECOND]), r"row 2: .* looks like s where others look like ms; fix it"),
        (pl.Series("ts", [SECOND * 1000, SECOND, SECOND]), r"row 1: .* looks like ms where others look like s; fix it"),
        (pl.Series("ts", ["2024-05-01", "17", "18"]), r"row 1: .* is a date among numbers"),
        (pl.Series("ts", [True, False]), r"column 'ts' is Boolean, not a time; name another with --time-col"),
    ],
)
def test_bad_times_name_their_row(column: pl.Series, message: str) -> None:
    with pytest.raises(DataError, match=message) as error:
        read_times(column, source="log")
    assert "\n" not in str(error.value)


def test_a_wrong_unit_is_noticed() -> None:
    with pytest.raises(DataError, match="after the year 5138; check --time-unit"):
        read_times(pl.Series([SECOND * 1000]), "s")
