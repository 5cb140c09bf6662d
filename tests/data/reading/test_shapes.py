"""The shapes in which people have their events: all of them give the same log."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from felrec.data.log import InteractionLog
from felrec.data.reading.sources import read_log
from felrec.errors import DataError

DAY = 86_400
EVENTS = [("ada", 7, 1.7e9 + n * DAY) if n % 2 else ("bob", 8, 1.7e9 + n * DAY) for n in range(6)]
FRAME = pl.DataFrame(EVENTS, schema=["user_id", "item_id", "timestamp"], orient="row").cast({"timestamp": pl.Int64})


def events_of(log: InteractionLog) -> list[tuple[Any, Any, float]]:
    return list(zip(log.user_ids.ids(log.users), log.item_ids.ids(log.items), log.times.tolist(), strict=True))


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("name", ["log.csv", "log.tsv", "log.txt"])
def test_the_separator_is_found(tmp_path: Path, separator: str, name: str) -> None:
    priced = FRAME.with_columns(price=pl.lit('12,50 "net"'))
    priced.write_csv(tmp_path / name, separator=separator)
    assert events_of(read_log(tmp_path / name)) == EVENTS


def test_a_decimal_comma_in_times(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("user;item;time\nada;7;1700000000,25\nbob;8;1700000001,5\n")
    assert read_log(path).times.tolist() == [1_700_000_000.25, 1_700_000_001.5]


@pytest.mark.parametrize("name", ["log.jsonl", "log.ndjson", "log.json", "log.jsonl.gz", "list.json"])
def test_json(tmp_path: Path, name: str) -> None:
    rows = [{**row, "basket": {"size": n}} for n, row in enumerate(FRAME.to_dicts())]
    text = json.dumps(rows) if name == "list.json" else "\n\n".join(map(json.dumps, rows)) + "\n"
    (tmp_path / name).write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    assert events_of(read_log(tmp_path / name)) == EVENTS


def test_json_rows_may_differ_in_fields_and_types(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"user": 1, "item": "a", "ts": "5"}\n{"ts": 6.5, "coupon": [1], "item": 2, "user": "x"}\n')
    assert events_of(read_log(path)) == [("1", "a", 5.0), ("x", "2", 6.5)]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "x.jsonl",
            '{"user": 1, "item": 2, "ts": 3}\n{"user": 1,\n',
            r"row 2: not a JSON object in UTF-8: {\"user\": 1,",
        ),
        ("x.jsonl", '{"user": 1, "item": 2, "ts": 3}\n[1, 2]\n', "row 2: not a JSON object"),
        ("x.jsonl", '{"user": 1, "item": 2, "ts": 3}\n{"user": 1, "item": 2, "ts": NaN}\n', "row 2: not a JSON object"),
        ("x.jsonl", "user,item,ts\n", "row 1: not a JSON object"),
        ("x.jsonl", '{"user": 1, "item": 2, "ts": 3}\n{"user": 1, "ts": 3}\n', "row 2: the item id .* is missing"),
        ("x.jsonl", '{"who": 1, "item": 2, "ts": 3}\n', "no column of users among 'who, item, ts'; name it with"),
        ("x.json", '[{"user": 1}, 5]', "cannot be read as JSON .*; write one object per line"),
        ("x.json", "[", "cannot be read as JSON"),
    ],
)
def test_bad_json_names_its_row(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=message) as error:
        read_log(tmp_path / name)
    assert "\n" not in str(error.value)


def write_parts(folder: Path, ending: str) -> None:
    folder.mkdir(parents=True)
    for n in range(3):
        part = FRAME[2 * n : 2 * n + 2]
        path = folder / f"part-{n}{ending}"
        if ending == ".parquet":
            part.cast({"item_id": pl.Int32 if n else pl.Int64}).write_parquet(path)
        elif ending == ".csv":
            part.rename({"user_id": "user" if n else "user_id"}).write_csv(path)
        else:
            part.write_ndjson(path)
    (folder / "_SUCCESS").touch()
    (folder / f"part-3{ending}").touch()  # some writers leave empty files
    (folder / "_delta_log").mkdir()
    (folder / "_delta_log" / "0.json").write_text("{}")


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".jsonl"])
def test_folders_and_patterns(tmp_path: Path, ending: str) -> None:
    write_parts(tmp_path / "log", ending)
    for given in ("log", f"log/*{ending}", f"**/part-*{ending}", "log/part-[0-9]*"):
        assert events_of(read_log(tmp_path / given)) == EVENTS, given
    assert events_of(read_log(tmp_path / f"log/*-0{ending}")) == EVENTS[:2]


def test_ids_of_all_files_decide_together_whether_they_are_integers(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("user,item,ts\n1,2,3\n")
    (tmp_path / "2.csv").write_text("user,item,ts\n1,007,4\n2,7,5\n")
    assert events_of(read_log(tmp_path)) == [(1, "2", 3.0), (1, "007", 4.0), (2, "7", 5.0)]


def test_hive_partitions_are_columns(tmp_path: Path) -> None:
    for n, (user, item, time) in enumerate(EVENTS):
        day = datetime.fromtimestamp(time, UTC).date()
        folder = tmp_path / "log" / f"date={day}" / "shop=a%20b"
        folder.mkdir(parents=True)
        pl.DataFrame({"user": [user], "item": [item]}).write_parquet(folder / f"{n}.parquet")
    expected = [(user, item, time // DAY * DAY) for user, item, time in EVENTS]
    assert events_of(read_log(tmp_path / "log")) == expected
    assert events_of(read_log(tmp_path / "log/*/*/*.parquet")) == expected
    with pytest.raises(DataError, match="all events have the same user"):
        read_log(tmp_path / "log", user_col="shop")


def test_a_column_of_a_file_wins_over_its_partition(tmp_path: Path) -> None:
    (tmp_path / "time=2001-01-01").mkdir()
    FRAME.rename({"timestamp": "time"}).write_csv(tmp_path / "time=2001-01-01" / "x.csv")
    assert events_of(read_log(tmp_path)) == EVENTS


@pytest.mark.parametrize(
    ("files", "given", "message"),
    [
        ({}, "", "no file of a log there; their names end in one of .parquet"),
        ({}, "*.csv", r"\*\.csv: no file of a log there"),
        ({"a.csv": "user,item,ts\n1,2,3\n", "b.jsonl": "{}"}, "", r"several kinds \(.csv, .jsonl\); .*\*.csv'"),
        (
            {"items.csv": "item,title\n1,tea\n", "log.csv": "user,item,ts\n1,2,3\n"},
            "",
            r"items.csv: no column of users among .*, or name only the files of the log, as in '.*/log\*.csv'",
        ),
        (
            {"a.csv": "user,item,ts\n1,2,3\n", "b.csv": "user,item,ts\n2,2,3\n,2,3\n"},
            "",
            r"row 2 of .*b.csv: the user id in column 'user' is missing",
        ),
        (
            {"a.csv": "user,item,ts\n1,2,3\n", "b.csv": "user,item,ts\n2,2,3\n2,2,3,4\n"},
            "",
            "row 2 of .*b.csv: more fields",
        ),
    ],
)  # fmt: skip
def test_folders_that_are_no_log(tmp_path: Path, files: dict[str, str], given: str, message: str) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=message) as error:
        read_log(tmp_path / given)
    assert "\n" not in str(error.value)


def test_a_file_may_have_a_name_like_a_pattern(tmp_path: Path) -> None:
    FRAME.write_csv(tmp_path / "log[1].csv")
    assert events_of(read_log(tmp_path / "log[1].csv")) == EVENTS


TIMES = pd.to_datetime([time for _, _, time in EVENTS], unit="s")
PANDAS = pd.DataFrame({"user": [user for user, _, _ in EVENTS], "item": [item for _, item, _ in EVENTS]})


@pytest.mark.parametrize("name", [None, "timestamp", "when", "Date"])
def test_a_datetime_index_is_the_time(name: str | None) -> None:
    assert events_of(read_log(PANDAS.set_index(TIMES.rename(name)))) == EVENTS
    shuffled = PANDAS.set_index(TIMES.rename(name).tz_localize("UTC").tz_convert("Asia/Tokyo"))[::-1]
    assert events_of(read_log(shuffled)) == EVENTS


def test_levels_of_an_index_are_columns_and_columns_win() -> None:
    frame = PANDAS.assign(time=TIMES)
    assert events_of(read_log(frame.set_index(["user", "time"]))) == EVENTS
    assert events_of(read_log(frame.set_index(TIMES[::-1]))) == EVENTS
    assert events_of(read_log(PANDAS.set_index(TIMES.rename("at")), time_col="at")) == EVENTS


IDS = [UUID(int=5), UUID("e2a1f5c0-58cc-4372-a567-0e02b2c3d479")]


@pytest.mark.parametrize(
    "users",
    [
        pd.Series(IDS),
        pl.Series(IDS, dtype=pl.Object),
        pl.Series([one.bytes for one in IDS]),
        pl.Series([str(one) for one in IDS]),
        pl.Series([str(one).encode() for one in IDS]),
        pa.array([one.bytes for one in IDS], pa.uuid()),
    ],
)
def test_uuids(users: Any) -> None:
    kind = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}[type(users).__module__.split(".")[0]]
    log = read_log(kind({"user": users, "item": [1, 2], "time": [5, 6]}))
    assert log.user_ids.ids(log.users) == [str(one) for one in IDS]


def test_whole_numbers_that_pandas_wrote_as_floats(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("user,item,ts\n1.0,2.5,3\n20.0,7,4\n")
    assert events_of(read_log(tmp_path / "x.csv")) == [(1, "2.5", 3.0), (20, "7", 4.0)]


def test_a_log_before_1970_is_a_log() -> None:
    log = read_log(FRAME)
    moved = read_log(FRAME.with_columns(pl.col("timestamp") - 3_000_000_000))
    assert (moved.times == log.times - 3e9).all()
    assert (moved.users == log.users).all()
    assert np.all(moved.times < 0)
