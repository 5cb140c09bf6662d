"""Reading only some rows of a log, and what it says of kinds and values."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import polars as pl
import pytest

from felrec.data.log import InteractionLog
from felrec.data.reading.details import Kinds, Values
from felrec.data.reading.sources import read_log
from felrec.data.summary import inspect
from felrec.errors import ConfigError, DataError

KINDS = ["view", "view", "cart", "purchase", None, "view", "purchase", "view", "cart", "view"] * 2
RATINGS = [1, 2, 3, 4, 5, None, 3, 2, 1, 4] * 2
FRAME = pl.DataFrame(
    {
        "user": [n % 4 for n in range(20)],
        "item": [n % 5 for n in range(20)],
        "time": range(20),
        "event_type": KINDS,
        "Rating": RATINGS,
        "shop": ["a", "b"] * 10,
    }
)


@pytest.fixture(params=["parquet", "csv", "decimal commas", "jsonl", "folder", "polars", "pandas"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> object:
    """The same log in every shape."""
    if request.param in ("polars", "pandas"):
        return FRAME if request.param == "polars" else pd.DataFrame(FRAME.to_dict(as_series=False))
    if request.param == "folder":
        for shop in ("a", "b"):
            (tmp_path / f"shop={shop}").mkdir()
            FRAME.filter(shop=shop).drop("shop").write_parquet(tmp_path / f"shop={shop}" / "0.parquet")
        return tmp_path
    path = tmp_path / f"log.{'csv' if ' ' in request.param else request.param}"
    if request.param == "parquet":
        FRAME.write_parquet(path)
    elif request.param == "csv":
        FRAME.write_csv(path)
    elif request.param == "jsonl":
        FRAME.write_ndjson(path)
    else:
        FRAME.cast({"Rating": pl.Float64}).write_csv(path, separator=";", decimal_comma=True)
    return path


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        ("event_type=purchase", [3, 6, 13, 16]),
        ("kind=purchase", [3, 6, 13, 16]),
        ("kind = purchase, cart", [2, 3, 6, 8, 12, 13, 16, 18]),
        ("kind!=view", [2, 3, 4, 6, 8, 12, 13, 14, 16, 18]),
        ("kind!=view,cart", [3, 4, 6, 13, 14, 16]),
        ("rating>=4", [3, 4, 9, 13, 14, 19]),
        ("value>3,5", [3, 4, 9, 13, 14, 19]),
        ("value=4.0", [3, 9, 13, 19]),
        ("rating<2", [0, 8, 10, 18]),
        (["kind=view", "Rating<=2", "shop=b"], [1, 7, 11, 17]),
        ("user!=0,1", [n for n in range(20) if n % 4 > 1]),
    ],
)
def test_only_rows_that_fulfil_all_conditions_are_read(source: object, where: str | list[str], rows: list[int]) -> None:
    assert read_log(source, where=where).times.tolist() == rows


def test_kinds_and_values_are_summarised(source: object) -> None:
    log = read_log(source)
    assert log.kinds == Kinds("event_type", {"view": 10, "cart": 4, "purchase": 4, "": 2})
    assert log.values == Values("Rating", 1, 3, 5)
    about = inspect(log)
    assert about["kinds"]["shares"]["view"] == 0.5
    assert about["values"]["highest"] == 5
    assert read_log(source, where="kind=cart").kinds == Kinds("event_type", {"cart": 4})


def test_a_log_without_them() -> None:
    log = read_log(FRAME.select("user", "item", "time"))
    assert (log.kinds, log.values) == (None, None)
    many = read_log(FRAME.with_columns(event_type=pl.format("e{}", pl.int_range(20))))
    assert many.kinds is not None
    ids = pl.concat([FRAME] * 4).with_columns(event_type=pl.format("e{}", pl.int_range(80)))
    assert read_log(ids).kinds is None  # too many to be kinds


@pytest.mark.parametrize(
    ("where", "error", "message"),
    [
        ("kind=purchse", DataError, "no row with kind=purchse; column 'event_type' is view, .* change --where"),
        (
            "colour=red",
            DataError,
            "no column 'colour' among 'user, item, time, .*'; change --where",
        ),
        ("kind", ConfigError, "write a condition such as 'kind=purchase'"),
        ("=purchase", ConfigError, "write a condition"),
        ("rating>good", ConfigError, "after > give a number"),
    ],
)
def test_conditions_that_cannot_be_met(where: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        read_log(FRAME, where=where)


def test_rows_that_are_not_asked_for_cannot_be_bad(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("user,item,time,kind\n1,2,3,buy\n,2,x,view\n2,3,4,buy\n3,3,soon,buy\n")
    log = read_log(path, where="kind=buy", bad_rows="skip", max_bad=0.5)
    assert log.times.tolist() == [3.0, 4.0]
    assert log.skipped is not None
    assert log.skipped.reasons[0].startswith("row 4: the time 'soon'")
    assert str(log.skipped) == "left out 1 of 3 rows"


def test_a_kind_that_only_some_files_have_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("user,item,time,kind\n1,2,3,buy\n")
    (tmp_path / "b.csv").write_text("item,user,time\n4,2,4\n")
    log = read_log(tmp_path)
    assert isinstance(log, InteractionLog)
    assert (log.kinds, log.item_ids.ids(log.items)) == (None, [2, 4])
    with pytest.raises(DataError, match=r"b\.csv: no column 'kind'"):
        read_log(tmp_path, where="kind=buy")
