from __future__ import annotations

import gzip
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from felrec.data.log import InteractionLog
from felrec.data.reading.datasets import DATASETS
from felrec.data.reading.sources import read_log
from felrec.errors import DataError

FRAME = pl.DataFrame({"userId": [9, 7, 9], "movieId": [30, 10, 20], "rating": [1.0, 2.0, 3.0], "timestamp": [5, 3, 4]})
EVENTS = [(7, 10, 3.0), (9, 20, 4.0), (9, 30, 5.0)]


def events_of(log: InteractionLog) -> list[tuple[Any, Any, float]]:
    return list(zip(log.user_ids.ids(log.users), log.item_ids.ids(log.items), log.times.tolist(), strict=True))


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_parquet_csv_tsv_and_frames_give_the_same_events(tmp_path: Path) -> None:
    FRAME.write_parquet(tmp_path / "log.parquet")
    FRAME.write_csv(tmp_path / "log.csv")
    FRAME.rename({"movieId": "item"}).write_csv(tmp_path / "other.csv")
    FRAME.write_csv(tmp_path / "LOG.TSV", separator="\t")
    (tmp_path / "log.csv.gz").write_bytes(gzip.compress((tmp_path / "log.csv").read_bytes()))
    for name in ("log.parquet", "log.csv", "other.csv", "LOG.TSV", "log.csv.gz"):
        assert events_of(read_log(tmp_path / name)) == EVENTS, name
    assert events_of(read_log(str(tmp_path / "log.csv"))) == EVENTS
    assert events_of(read_log(FRAME)) == EVENTS


def test_recbole_inter(tmp_path: Path) -> None:
    text = "user_id:token\titem_id:token\trating:float\ttimestamp:float\n1\tb\t4\t880.0\n2\ta\t3\t870.5\n"
    assert events_of(read_log(write(tmp_path / "x.inter", text))) == [(2, "a", 870.5), (1, "b", 880.0)]


def test_ids_with_leading_zeros_stay_apart(tmp_path: Path) -> None:
    log = read_log(write(tmp_path / "x.csv", "user,item,ts\n1,007,1\n2,7,2\n"))
    assert events_of(log) == [(1, "007", 1.0), (2, "7", 2.0)]


def test_windows_line_ends_quotes_and_blank_lines_at_the_end(tmp_path: Path) -> None:
    text = '\ufeffuser,item,ts\r\n1,"a,b",2024-05-01\r\n2,c,2024-05-02\r\n\r\n\r\n'
    log = read_log(write(tmp_path / "x.csv", text))
    assert [(user, item) for user, item, _ in events_of(log)] == [(1, "a,b"), (2, "c")]


def test_columns_can_be_named_and_units_given(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", "who,what,when\na,x,1500\nb,y,500\n")
    log = read_log(path, user_col="who", item_col="what", time_col="when", time_unit="ms")
    assert events_of(log) == [("b", "y", 0.5), ("a", "x", 1.5)]


@pytest.mark.parametrize("name", ["ml-1m", "ml-10M100K"])
def test_movielens_dat_folder(tmp_path: Path, name: str) -> None:
    write(tmp_path / name / "ratings.dat", "9::30::5::5\n7::10::3.5::3\n9::20::4::4\n")
    write(tmp_path / name / "movies.dat", "10::Toy Story (1995)::Comedy\n")
    assert events_of(read_log(tmp_path / name)) == EVENTS


def test_movielens_100k_folder_and_file(tmp_path: Path) -> None:
    path = write(tmp_path / "ml-100k" / "u.data", "9\t30\t5\t5\n7\t10\t3\t3\n9\t20\t4\t4\n")
    assert events_of(read_log(path.parent)) == events_of(read_log(path)) == EVENTS


def test_movielens_csv_folder(tmp_path: Path) -> None:
    FRAME.write_csv(write(tmp_path / "ml-25m" / "ratings.csv", ""))
    write(tmp_path / "ml-25m" / "movies.csv", "movieId,title,genres\n")
    assert events_of(read_log(tmp_path / "ml-25m")) == EVENTS


@pytest.mark.parametrize(
    ("change", "first"),
    [
        (("", ""), (7, 10, 3.0)),
        (("3.5", "good"), (7, 10, 3.0)),  # a rating is not looked at
        (("7,", "5000000000,"), (5_000_000_000, 10, 3.0)),  # beyond 32 bits
        ((",3\n", ",3\n\n\n"), (7, 10, 3.0)),  # blank lines at the end
        (("7,", "x,"), ("x", 10, 3.0)),
    ],
)
def test_movielens_csv_of_any_width_gives_the_same_events(
    tmp_path: Path, change: tuple[str, str], first: tuple[Any, Any, float]
) -> None:
    text = "userId,movieId,rating,timestamp\n9,30,5,5\n9,20,4,4\n7,10,3.5,3\n".replace(*change)
    log = read_log(write(tmp_path / "ratings.csv", text))
    nine: Any = "9" if first[0] == "x" else 9
    assert events_of(log) == [first, (nine, 20, 4.0), (nine, 30, 5.0)]
    assert log.user_ids.series.dtype == (pl.String if first[0] == "x" else pl.Int64)


@pytest.mark.parametrize("name", ["100k_a.csv", "full_a.csv", "full_a.csv.gz"])
def test_twitch_has_no_header_and_steps_of_ten_minutes(tmp_path: Path, name: str) -> None:
    text = "1,33842865744,mithrain,154,156\n1,33846768288,alptv,2,3\n2,33886469056,mithrain,3,9\n"
    path = write(tmp_path / name, gzip.compress(text.encode()) if name.endswith(".gz") else text)
    expected = [(1, "alptv", 1200.0), (2, "mithrain", 1800.0), (1, "mithrain", 92400.0)]
    assert events_of(read_log(path)) == events_of(read_log(tmp_path)) == expected
    assert read_log(path, item_col="stream").n_items == 3


def test_jodie_header_is_shorter_than_its_rows(tmp_path: Path) -> None:
    header = "user_id,item_id,timestamp,state_label,comma_separated_list_of_features\n"
    text = header + "0,5,0.0,0,-0.1,0.2,0.3\n1,6,36.5,1,1,2,3\n"
    for name in ("wikipedia.csv", "mine.csv"):
        assert events_of(read_log(write(tmp_path / name, text))) == [(0, 5, 0.0), (1, 6, 36.5)]
    assert len(read_log(tmp_path)) == 2
    assert len(read_log(tmp_path / "mine.csv", user_col="user_id", item_col="item_id")) == 2


BAD: list[tuple[str, str | bytes, str]] = [
    ("x.csv", "", "the file is empty"),
    ("x.csv", "user,item,ts\n", "there are no events"),
    ("x.csv", "\n\n\n", "no events|no column|empty"),
    ("x.csv", "a,item,ts\n1,2,3\n", "no column of users among 'a, item, ts'; name it with --user-col"),
    ("x.csv", "user,item,ts\n1,2,3\n,2,3\n", "row 2: the user id in column 'user' is missing"),
    ("x.csv", "user,item,ts\n1,2,3\n2,3\n", "row 2: the time in column 'ts' is missing"),
    ("x.csv", "user,item,ts\n1,2,3\n\n2,3,4\n", "row 2: the user id in column 'user' is missing"),
    ("x.csv", "user,item,ts\n1,2,9\n2,2,3\n1,5,6,7\n", "row 3: more fields than the first line; quote"),
    ("x.csv", 'user,item,ts\n1,"2,9\n2,2,3\n', "row 1: a quote is not closed"),
    ("x.csv", b"user,item,ts\n1,2,9\n2,caf\xe9,3\n", "row 2: not UTF-8 text; save the file as UTF-8"),
    ("x.csv", "user,item,ts\n1,2,9\n2,3,later\n", "row 2: the time 'later' in column 'ts' cannot be read"),
    ("x.csv", "user,item,ts\n1,2,9\n1,3,8\n", "all events have the same user"),
    ("x.csv", "<!DOCTYPE html><html>quota exceeded</html>", "this is an HTML page, not text"),
    ("x.csv", b"PAR1\x15\x04", "this is a Parquet file, not text as its name says; rename it to .parquet"),
    ("x.csv", b"PK\x03\x04rest", "this is a ZIP archive"),
    ("x.csv", "user,item,ts\n1,2,3\n".encode("utf-16"), "UTF-16 text, not text as its name says; save it as UTF-8"),
    ("x.tsv", b"\x89\x00\x01\x02garbage", "this is binary data"),
    ("x.csv.gz", "user,item,ts\n1,2,3\n", "cannot be read"),
    ("x.parquet", "user,item,ts\n1,2,3\n", "this is text, not a Parquet file"),
    ("x.parquet", b"PAR1 cut off", "damaged or cut off"),
    ("x.xlsx", "whatever", "unknown file name ending; use one of .parquet, .csv"),
    ("ratings.csv", "userId,movieId,rating,timestamp\n1,2,3,4\n2,2,3,x\n", "row 2: the time 'x'"),
    ("ratings.csv", "userId,movieId,rating,timestamp\n1,2,3,4\n2,2,3,4,5\n", "row 2: more fields"),
    ("ratings.csv", "userId,movieId,rating,timestamp\n1,2,3,4\n2,,3,4\n", "row 2: the item id in .* is missing"),
    ("ratings.dat", "1::2::3\n", "lines are not user::item::rating::time"),
    ("u.data", "1\t2\t3\n", "lines are not tab-separated user, item, rating, time"),
    ("100k_a.csv", "user,stream,streamer,start,stop\n1,2,a,3,4\n", "row 1: the start 'start' is not a step"),
    ("100k_a.csv", "1,2,3\n", "lines are not user,stream,streamer,start,stop"),
    ("reddit.csv", "user_id,item_id,timestamp,state_label,features\n", "no event"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "message"), BAD)
def test_bad_files_are_refused_in_one_line_that_names_them(
    tmp_path: Path, name: str, content: str | bytes, message: str
) -> None:
    path = write(tmp_path / name, content)
    with pytest.raises(DataError, match=message) as error:
        read_log(path)
    assert str(error.value).startswith(f"{path}: ")
    assert "\n" not in str(error.value)


def test_missing_columns_of_parquet_and_cut_files(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    FRAME.drop("movieId").write_parquet(path)
    with pytest.raises(
        DataError, match="no column of items among 'userId, rating, timestamp'; name it with --item-col"
    ):
        read_log(path)
    FRAME.write_parquet(path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match="damaged or cut off"):
        read_log(path)


def test_missing_files_and_unknown_folders(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file or folder"):
        read_log(tmp_path / "none.csv")
    with pytest.raises(DataError, match=r"no file of a log there; their names end in one of \.parquet"):
        read_log(tmp_path)
    write(tmp_path / "u.data", "")
    write(tmp_path / "ratings.dat", "")
    with pytest.raises(DataError, match=r"several logs; give one of u\.data, ratings\.dat"):
        read_log(tmp_path)


def test_every_dataset_is_described() -> None:
    for name, dataset in DATASETS.items():
        assert dataset.name == name
        assert min(dataset.rows, dataset.users, dataset.items) > 0
        assert dataset.licence
        assert dataset.homepage.startswith("https://")
        assert (len(dataset.md5 or "") == 32) == name.startswith("ml-") == dataset.is_archive


@pytest.mark.realdata
@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_a_real_log_survives_text(
    real_log: Callable[[str], InteractionLog], data_dir: Path, tmp_path: Path, ending: str
) -> None:
    path = tmp_path / f"log.{ending}"
    pl.read_parquet(data_dir / "ml-100k.parquet").write_csv(path, separator="\t" if ending == "tsv" else ",")
    assert read_log(path).fingerprint == real_log("ml-100k").fingerprint


def test_reading_data_needs_no_torch() -> None:
    code = "import sys, felrec.data; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("1,2,3\n4,5,6\n", "first line must name the columns"),
        ("ada,tea,1600000000\nbob,tea,1600000001\n", "first line must name the columns"),
    ],
)
def test_advice_fits_the_mistake(tmp_path: Path, content: str, says: str) -> None:
    file = tmp_path / "log.csv"
    file.write_text(content)
    with pytest.raises(DataError, match=says):
        read_log(file)


def test_a_cut_archive_is_named(tmp_path: Path) -> None:
    file = tmp_path / "log.csv.gz"
    whole = gzip.compress(("user,item,timestamp\n" + "1,2,3\n2,3,4\n" * 50_000).encode())
    file.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"log\.csv\.gz"):
        read_log(file)
