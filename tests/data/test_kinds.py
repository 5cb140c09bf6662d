"""The table of kinds: how it is written, what it says of rows, and its mistakes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from felrec.data.kinds import Given, KindTable
from felrec.data.log import InteractionLog
from felrec.data.reading.sources import read_log
from felrec.errors import ConfigError, DataError

TABLE = "view=context, buy=2, bin=ignore, rating<3=negative"
FRAME = pl.DataFrame(
    {
        "user": ["a", "b", "a", "b", "c", "a"],
        "item": ["x", "y", "z", "x", "y", "y"],
        "timestamp": [6, 5, 4, 3, 2, 1],
        "event_type": ["view", "buy", "bin", "love", None, "love"],
        "rating": [1.0, 1, 5, 5, None, 2],
    }
)
WEIGHTS = [-1, 1, 1, 2, 0]  # in time order, without the one that is ignored


def weights_of(log: InteractionLog) -> list[float]:
    assert log.events.weights is not None
    weights: list[float] = log.events.weights.tolist()
    return weights


def in_toml(folder: Path) -> str:
    path = folder / "shop.toml"
    path.write_text('[kinds]\nview = "context"\nbuy = 2\nbin = "ignore"\n"rating<3" = "negative"\n')
    return str(path)


def test_a_table_is_text_a_dictionary_or_a_file(tmp_path: Path) -> None:
    as_dictionary: Given = {"view": "context", "buy": 2, "bin": "ignore", "rating<3": "negative"}
    for given in (TABLE, as_dictionary, in_toml(tmp_path), Path(in_toml(tmp_path))):
        log = read_log(FRAME, kinds=given)
        assert (weights_of(log), log.ignored) == (WEIGHTS, 1)
    assert KindTable.of(None) is None


def test_files_and_frames_are_read_alike(tmp_path: Path) -> None:
    FRAME.write_csv(tmp_path / "log.csv")
    FRAME.write_parquet(tmp_path / "log.parquet")
    logs = [read_log(tmp_path / f"log.{kind}", kinds=TABLE) for kind in ("csv", "parquet")]
    logs += [read_log(FRAME, kinds=TABLE), InteractionLog.from_frame(FRAME, kinds=TABLE)]
    assert len({log.fingerprint for log in logs}) == 1
    assert all(weights_of(log) == WEIGHTS for log in logs)
    assert logs[0].fingerprint != read_log(FRAME.filter(pl.col("event_type").ne_missing("bin"))).fingerprint


def test_the_first_entry_that_matches_decides() -> None:
    assert weights_of(read_log(FRAME, kinds="rating<3=negative,view=context,*=3")) == [-1, 3, 3, 3, -1, -1]
    assert weights_of(read_log(FRAME, kinds="*=3,view=context")) == [3] * 6


def test_a_part_of_a_log_keeps_its_weights() -> None:
    log = read_log(FRAME, kinds=TABLE)
    assert weights_of(log.newest(2)) == WEIGHTS[-2:]
    assert weights_of(log.part(1, 3)) == WEIGHTS[1:3]
    assert log.newest(2).ignored == 1


def test_weights_that_were_written_are_read_again() -> None:
    written = FRAME.drop("event_type", "rating").with_columns(event_weight=pl.Series([2.0, None, 0.0, -1.0, 1.0, 0.5]))
    log = read_log(written)
    np.testing.assert_array_equal(weights_of(log), [0.5, 1, -1, 0, np.nan, 2])
    with pytest.raises(DataError, match="'event_weight' says already"):
        read_log(written, kinds="*=2")
    with pytest.raises(DataError, match="not numbers"):
        read_log(written.with_columns(event_weight=pl.lit("much")))


def test_other_columns_of_weights_mean_nothing() -> None:
    assert read_log(FRAME.with_columns(weight=pl.lit(5.0))).events.weights is None
    assert read_log(FRAME).events.weights is None


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("view", "write it as view=context"),
        ("=2", "write it as"),
        ("rating<=2", "write it as"),
        ("view=context,view=2", "two entries"),
        ("view=much", "give a weight from -1000 to 1000, or one of context, negative, ignore"),
        ("view=1e9", "give a weight"),
        ("view=nan", "give a weight"),
        ("price<3=negative", "a condition is on the value"),
        ("none.toml", "cannot be read"),
        ({}, "no entries"),
        ({"view": True}, "give a weight"),
    ],
)
def test_mistakes_in_a_table(table: Given, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        KindTable.of(table)


def test_a_toml_file_without_the_table(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text("[model]\nwidth = 3\n")
    with pytest.raises(ConfigError, match=r"has no table \[kinds\]"):
        KindTable.of(str(tmp_path / "x.toml"))


def test_a_table_that_does_not_fit_the_log() -> None:
    with pytest.raises(DataError, match="no column of kinds"):
        read_log(FRAME.drop("event_type", "rating"), kinds=TABLE)
    with pytest.raises(DataError, match="no column of kinds"):
        read_log(FRAME.drop("event_type"), kinds="view=context")
    with pytest.raises(DataError, match="no column of values"):
        read_log(FRAME.drop("rating"), kinds="rating<3=negative")
    with pytest.raises(DataError, match="leaves no event"):
        read_log(FRAME, kinds="*=ignore")


def test_one_table_is_for_logs_with_and_without_values() -> None:
    log = read_log(FRAME.drop("rating"), kinds=TABLE)
    assert (weights_of(log), log.unmatched) == ([1, 1, 1, 2, 0], ("rating<3",))
    log = read_log(FRAME.drop("event_type"), kinds=TABLE)
    assert (weights_of(log), log.unmatched) == ([-1, 1, 1, 1, -1, -1], ("view", "buy", "bin"))
    assert read_log(FRAME, kinds=TABLE).unmatched == ()


def test_entries_that_match_nothing_are_named() -> None:
    log = read_log(FRAME, kinds="vieuw=context,buy=2,bin=ignore,rating<1=negative,*=1")
    assert log.unmatched == ("vieuw", "rating<1")
    assert log.newest(2).unmatched == ("vieuw", "rating<1")


def test_rejected_rows_of_a_log_with_kinds_are_written(tmp_path: Path) -> None:
    rough = FRAME.with_columns(user=pl.Series([None, *FRAME["user"][1:]]))
    log = read_log(rough, kinds=TABLE, bad_rows="skip", max_bad=0.5, rejected=tmp_path / "rejected.csv")
    assert weights_of(log) == WEIGHTS[:-1]
    assert pl.read_csv(tmp_path / "rejected.csv")["item"].to_list() == ["x"]
