from __future__ import annotations

import hashlib
import struct
from random import Random
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from felrec.data import numbering
from felrec.data.events import Events
from felrec.data.log import InteractionLog
from felrec.data.numbering import by_first_appearance, coded, encode, sort_times
from felrec.data.reading.timestamps import Ticks
from felrec.errors import DataError

IDS = st.one_of(st.integers(0, 6), st.sampled_from([-(2**62), 2**62]))
ROWS = st.lists(st.tuples(IDS, st.sampled_from("abcde"), st.integers(0, 5)), min_size=2, max_size=30)


def frame_of(rows: list[tuple[Any, Any, Any]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=["user", "item", "timestamp"], orient="row")


def naive(rows: list[tuple[Any, Any, Any]]) -> tuple[list[int], list[int], list[Any], list[Any]]:
    """Stable sort by time, then numbers by first appearance: one event after the other."""
    users, items = dict[Any, int](), dict[Any, int]()
    ordered = sorted(rows, key=lambda row: row[2])
    user_rows = [users.setdefault(user, len(users)) for user, _, _ in ordered]
    item_rows = [items.setdefault(item, len(items)) for _, item, _ in ordered]
    return user_rows, item_rows, list(users), list(items)


@given(ROWS, st.sampled_from([1, 0.25]))
def test_a_log_is_sorted_stably_and_numbered_by_first_appearance(
    rows: list[tuple[int, str, float]], unit: float
) -> None:
    rows = [(0, "a", 3.0), (1, "b", 3.0), *((user, item, time * unit) for user, item, time in rows)]
    log = InteractionLog.from_frame(frame_of(rows))
    user_rows, item_rows, users, items = naive(rows)
    assert log.users.tolist() == user_rows
    assert log.items.tolist() == item_rows
    assert log.user_ids.series.to_list() == users
    assert log.item_ids.series.to_list() == items
    assert log.times.tolist() == sorted(time for _, _, time in rows)
    assert [column.dtype.name for column in (log.users, log.items, log.times)] == ["int32", "int32", "float64"]
    assert log.users.flags.writeable


@given(st.lists(st.one_of(st.integers(0, 9), st.integers(0, 2**62)), max_size=40))
def test_time_order_is_the_stable_argsort(ticks: list[int]) -> None:
    column = np.array(ticks, dtype=np.int64)
    assert sort_times(Ticks(column, 1))[0].tolist() == np.argsort(column, kind="stable").tolist()
    assert sort_times(Ticks(column / 3, 1))[0].tolist() == np.argsort(column / 3, kind="stable").tolist()


@given(st.lists(st.integers(0, 2**40), min_size=1, max_size=40), st.sampled_from([1, 1000, 10**9]))
def test_sorted_seconds_are_those_of_the_order(ticks: list[int], per_second: int) -> None:
    for values in (np.array(ticks), np.array(ticks, dtype=np.int64) % 1000, np.array(ticks) / 3):
        with mock.patch.object(numbering, "_BLOCK", 8):
            order, seconds = sort_times(Ticks(values, per_second))
        assert seconds.dtype == np.float64
        assert seconds.tolist() == Ticks(values, per_second).seconds()[order].tolist()
        assert order.tolist() == np.argsort(values, kind="stable").tolist()


@given(st.lists(st.integers(0, 9), max_size=40), st.randoms())
def test_rows_are_numbered_by_first_appearance_in_any_order(codes: list[int], random: Random) -> None:
    order = random.sample(range(len(codes)), len(codes))
    column, places = np.array(codes, dtype=np.int32), np.array(order, dtype=np.uint32)
    known = dict[int, int]()
    expected = [known.setdefault(codes[place], len(known)) for place in order]
    with mock.patch.object(numbering, "_BLOCK", 4):
        rows, old = by_first_appearance(column, 10, places)
        plain_rows, plain_old = by_first_appearance(column[places], 10)
    assert rows.tolist() == plain_rows.tolist() == expected
    assert old.tolist() == plain_old.tolist() == list(known)


@given(st.lists(st.lists(IDS, max_size=9), min_size=1, max_size=4), st.sampled_from([pl.Int32, pl.Int64, pl.String]))
def test_codes_stand_for_their_ids_however_these_come(chunks: list[list[int]], kind: type[pl.DataType]) -> None:
    kept = [[one for one in chunk if kind != pl.Int32 or abs(one) < 2**31] for chunk in chunks]
    ids = pl.concat([pl.Series("id", chunk, dtype=pl.Int64).cast(kind) for chunk in kept], rechunk=False)
    codes = coded(ids)
    assert codes.codes.dtype == np.int32
    assert (codes.codes < codes.size).all()
    named = codes.ids(codes.codes.astype(np.int64))
    assert named.to_list() == ids.to_list()
    assert named.dtype == (pl.String if kind == pl.String else pl.Int64)


@pytest.mark.parametrize("ids", [[5, 3, 5], [-(2**62), 2**62, 0], ["x", "", "x"]])
def test_codes_stand_for_their_values(ids: list[int] | list[str]) -> None:
    codes, values = encode(pl.Series(ids))
    assert values.gather(codes).to_list() == ids
    assert len(values) == len(set(ids))


def test_every_kind_of_frame_gives_the_same_log() -> None:
    frame = frame_of([("b", 7, 2), ("a", 8, 1), ("b", 9, 2)])
    logs = [
        InteractionLog.from_frame(kind)
        for kind in (frame, frame.lazy(), frame.to_pandas(), frame.to_arrow(), pa.table(frame.to_dict(as_series=False)))
    ]
    assert len({log.fingerprint for log in logs}) == 1
    assert isinstance(logs[0][1:], Events)
    assert (len(logs[0]), logs[0].n_users, logs[0].n_items) == (3, 2, 3)


def test_pandas_floats_with_whole_numbers_are_integers() -> None:
    frame = pd.DataFrame({"user": [1.0, 2.0], "item": [3, 4], "timestamp": pd.to_datetime([1, 2], unit="s", utc=True)})
    log = InteractionLog.from_frame(frame)
    assert log.user_ids.series.to_list() == [1, 2]
    assert log.times.tolist() == [1.0, 2.0]


def test_unsigned_ids_beyond_64_bits_become_strings() -> None:
    frame = pl.DataFrame({"user": pl.Series([2**64 - 1, 1], dtype=pl.UInt64), "item": [1, 2], "timestamp": [1, 2]})
    assert InteractionLog.from_frame(frame).user_ids.series.to_list() == [str(2**64 - 1), "1"]


def test_categories_are_strings() -> None:
    frame = frame_of([("b", 7, 2), ("a", 8, 1)]).with_columns(pl.col("user").cast(pl.Categorical))
    assert InteractionLog.from_frame(frame).user_ids.series.to_list() == ["a", "b"]


GOOD = {"user": [1, 2], "item": ["a", "b"], "timestamp": [1, 2]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"user": [1, None]}, r"^frame: row 2: the user id in column 'user' is missing; fix it"),
        ({"item": ["", "a"]}, r"row 1: the item id in column 'item' is empty"),
        ({"user": [1.0, 2.5]}, r"row 2: the user id 2.5 in column 'user' is not a whole number"),
        ({"user": [1.0, float("nan")]}, r"row 2: the user id nan"),
        (
            {"user": [True, False]},
            r"column 'user' is Boolean, but ids of users are .* --user-col",
        ),
        ({"user": [[1], [2]]}, r"column 'user' is List"),
        ({"user": [4, 4]}, r"all events have the same user.*--user-col"),
        ({"item": ["a", "a"]}, r"all events have the same item"),
        ({"timestamp": [1, -99_999_999_999]}, r"row 2: the time -99999999999 .* is before the year 1"),
    ],
)
def test_bad_frames_are_refused_in_one_line(change: dict[str, list[Any]], message: str) -> None:
    with pytest.raises(DataError, match=message) as error:
        InteractionLog.from_frame(pl.DataFrame({**GOOD, **change}))
    assert "\n" not in str(error.value)


def test_empty_and_strange_frames_are_refused() -> None:
    with pytest.raises(DataError, match="no events"):
        InteractionLog.from_frame(pl.DataFrame(GOOD).clear())
    with pytest.raises(DataError, match="dict is not a frame"):
        InteractionLog.from_frame(GOOD)
    with pytest.raises(DataError, match="one type per column"):
        InteractionLog.from_frame(pd.DataFrame({**GOOD, "user": [1, "x"]}))


def test_the_fingerprint_sees_everything() -> None:
    base = InteractionLog.from_frame(pl.DataFrame(GOOD))
    assert base.fingerprint == InteractionLog.from_frame(pl.DataFrame(GOOD)).fingerprint
    changes: list[dict[str, list[Any]]] = [
        {"user": [1, 3]}, {"user": ["1", "2"]}, {"item": ["a", "c"]}, {"item": ["ab", "c"]},
        {"item": ["a", "bc"]}, {"timestamp": [1, 3]},
    ]  # fmt: skip
    others = [InteractionLog.from_frame(pl.DataFrame({**GOOD, **change})).fingerprint for change in changes]
    assert len({base.fingerprint, *others}) == 7


def test_the_fingerprint_never_changes_between_versions() -> None:
    written = struct.pack("<2i2i2d", 0, 1, 0, 1, 1.0, 2.0)
    written += b"int:2;" + struct.pack("<2q", 1, 2) + b"str:2;" + struct.pack("<2I", 1, 1) + b"ab"
    assert InteractionLog.from_frame(pl.DataFrame(GOOD)).fingerprint == hashlib.sha256(written).hexdigest()


def test_a_sample_keeps_order_and_numbers_anew() -> None:
    n = 200
    frame = pl.DataFrame({"user": np.arange(n) % 37, "item": np.arange(n) % 11, "timestamp": np.arange(n)})
    log = InteractionLog.from_frame(frame)
    part = log.sample(50, seed=3)
    events = set(zip(frame["user"], frame["item"], frame["timestamp"], strict=True))
    sampled = list(zip(part.user_ids.ids(part.users), part.item_ids.ids(part.items), part.times.tolist(), strict=True))
    assert len(set(sampled)) == 50
    assert set(sampled) <= events
    assert part.times.tolist() == sorted(part.times.tolist())
    assert list(dict.fromkeys(part.users.tolist())) == list(range(part.n_users))
    assert list(dict.fromkeys(part.items.tolist())) == list(range(part.n_items))
    assert part.fingerprint == log.sample(50, seed=3).fingerprint != log.sample(50, seed=4).fingerprint
    with pytest.raises(DataError, match="cannot sample 201"):
        log.sample(201, seed=0)


def test_the_newest_events_are_a_log_of_their_own() -> None:
    frame = pl.DataFrame({"user": [1, 2, 3, 1], "item": [5, 6, 7, 8], "timestamp": [3, 0, 1, 2]})
    log = InteractionLog.from_frame(frame)
    newest = log.newest(2)
    assert newest.user_ids.ids(newest.users) == [1, 1]
    assert newest.times.tolist() == [2.0, 3.0]
    assert newest.users.tolist() == [0, 0]
    assert log.newest(9) is log
    with pytest.raises(DataError, match="at least 1"):
        log.newest(0)
