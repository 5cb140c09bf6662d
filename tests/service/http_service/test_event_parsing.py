"""Events are read the same way, whether at once or row by row."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from felrec.data.events import BEGINNING
from felrec.data.kinds import KindTable
from felrec.service.http.event_fields import OTHERS
from felrec.service.http.event_parsing import _each_row, _plain_events, read_events
from felrec.service.http.problems import Problem
from felrec.service.http.row_bodies import LIMITS

NOW = 2e9
IDS = st.one_of(
    st.text(max_size=4), st.sampled_from(["a" * 256, "a" * 257, "é" * 256, "a\n", "\x9f", "\ud800"]), st.integers()
)
TIMES = st.one_of(
    st.none(), st.integers(), st.floats(), st.sampled_from([NOW + 300, NOW + 301, -0.0, "2026-01-01", True, 10**30])
)
ROWS = st.one_of(
    st.fixed_dictionaries(
        {"user": IDS, "item": IDS},
        optional={
            "timestamp": TIMES,
            "other": st.none(),
            "kind": st.sampled_from(["view", " buy ", "bin", "", 7, True, None]),
            "value": st.sampled_from([1, 2.5, "3", False, None, 10**400]),
        },
    ),
    st.none() | st.integers(),
)


KINDS = KindTable.parse("view=context,value<2=negative,buy=3,7=4,bin=ignore")


def same_as_row_by_row(body: bytes, kinds: KindTable | None = None) -> bool:
    """Whether a body can be read at once; then it is read as row by row."""
    read = _plain_events(body, NOW, kinds)
    if read is None:
        return False
    plain, (slowly, rejected, ignored, left_out) = read.events, _each_row(body, False, NOW, True, kinds)
    assert (rejected, ignored, left_out) == ([], None, read.left_out)
    assert (plain.users, plain.items) == (slowly.users, slowly.items)
    assert np.array_equal(plain.times, slowly.times, equal_nan=True)
    numbers = [slowly.number(place) for place in range(len(slowly))]
    assert [plain.number(place) for place in range(len(plain))] == numbers
    assert (plain.weights is None) == (kinds is None)
    assert plain.weights is None or np.array_equal(plain.weights, np.asarray(slowly.weights))
    return True


@given(rows=st.lists(ROWS, max_size=3) | ROWS, ascii_only=st.booleans())
def test_any_rows(rows: Any, ascii_only: bool) -> None:
    body = json.dumps(rows, ensure_ascii=ascii_only).encode(errors="surrogatepass")
    same_as_row_by_row(body)
    same_as_row_by_row(body, KINDS)


@given(body=st.binary(max_size=30) | st.text('[]{}",:usertimap0123456789.eE+- \\', max_size=40).map(str.encode))
def test_any_bytes(body: bytes) -> None:
    same_as_row_by_row(body)


@pytest.mark.parametrize(
    "body",
    [
        b'{"user": "ada", "item": "tea"}',
        b' [{"user": "ada", "item": "tea", "timestamp": null}] ',
        b'[{"user": "ada", "item": "\\u00e9 \\ud83d\\ude00", "timestamp": 5}]',
        '[{"item": "é 😀", "user": "ada", "timestamp": 1.5e9}]'.encode(),
        b'[{"user": "x", "user": "ada", "item": "tea"}]',
        b"[]",
        json.dumps([{"user": "a" * 256, "item": "é" * 256}], ensure_ascii=False).encode(),
    ],
)
def test_what_most_clients_send_is_read_at_once(body: bytes) -> None:
    assert same_as_row_by_row(body)


def test_kinds_and_values_are_worth_what_the_table_says() -> None:
    said: list[dict[str, Any]] = [
        {"kind": "view"},
        {"kind": "buy"},
        {"kind": "bin"},
        {"kind": " buy ", "value": 1},
        {},
        {"kind": 7},
    ]
    rows = [{"user": "a", "item": str(n), **one} for n, one in enumerate(said)]
    wrong = [{"user": "a", "item": "b", "kind": []}, {"user": "a", "item": "b", "value": "x"}]
    for body, lines in (
        (json.dumps(rows + wrong), False),
        ("\n".join(map(json.dumps, rows + wrong)), True),
    ):
        events, rejected, ignored, left_out = read_events(body.encode(), lines, NOW, strict=True, kinds=KINDS)
        assert events.items == ["0", "1", "3", "4", "5"]
        assert np.array_equal(np.asarray(events.weights), [0, 3, -1, 1, 4])
        assert ([row.row for row in rejected], ignored, left_out) == ([6, 7], None, 1)
    assert same_as_row_by_row(json.dumps(rows[:4]).encode(), KINDS)
    without = read_events(json.dumps(rows).encode(), lines=False, now=NOW)
    assert (without.events.weights, without.ignored) == (None, {"kind": 5, "value": 1})


def test_more_rows_than_allowed_are_refused() -> None:
    body = json.dumps([{"user": "a", "item": "b"}] * (LIMITS.submission + 1)).encode()
    with pytest.raises(Problem):
        read_events(body, lines=False, now=NOW)


def test_times_that_are_none() -> None:
    for moment in (math.nan, math.inf, BEGINNING - 1, 1e11, NOW + 301):
        body = json.dumps([{"user": "a", "item": "b", "timestamp": moment}]).encode()
        assert _plain_events(body, NOW) is None


@pytest.mark.parametrize("lines", [False, True])
@pytest.mark.parametrize(
    "row",
    [
        {"user_id": "ada", "item_id": "tea", "timestamp": 5},
        {"userId": "ada", "productId": "tea", "ts": 5},
        {"Customer ID": "ada", "sku": "tea", "created_at": "1970-01-01T00:00:05Z"},
        {"user": "Ada Lovelace", "user_id": "ada", "item": "Tea", "item_id": "tea", "date": 9, "timestamp": 5},
    ],
)
def test_fields_have_the_names_of_columns_in_files(row: dict[str, Any], lines: bool) -> None:
    events, rejected, _, _ = read_events(json.dumps(row).encode(), lines, NOW)
    assert (events.users, events.items, events.times.tolist(), rejected) == (["ada"], ["tea"], [5.0], [])


def test_unknown_fields_are_ignored_and_counted_unless_strict() -> None:
    good = {"user": "a", "item": "b"}
    rows = [good | {"price": 1}, good, {"user": "a", "price": 2}, good | {"price": 1, "x" * 50: 2}]
    events, rejected, ignored, _ = read_events(json.dumps(rows).encode(), lines=False, now=NOW)
    assert [events.number(place) for place in range(len(events))] == [0, 1, 3]
    assert [row.row for row in rejected] == [2]
    assert ignored == {"price": 2, "x" * 40: 1}  # of accepted events
    strictly = read_events(json.dumps(rows).encode(), lines=False, now=NOW, strict=True)
    assert (len(strictly.events), strictly.ignored) == (1, None)
    assert "unknown field 'price'" in strictly.rejected[0].reason


def test_a_client_cannot_fill_the_receipt_with_names() -> None:
    row = {"user": "a", "item": "b"} | {f"field {n}": n for n in range(1_000)}
    ignored = read_events(json.dumps(row).encode(), lines=False, now=NOW).ignored
    assert ignored is not None
    assert (len(ignored), ignored[OTHERS], sum(ignored.values())) == (21, 980, 1_000)


def test_times_before_1970_are_times() -> None:
    rows = [{"user": "a", "item": "b", "timestamp": moment} for moment in (-5, "1969-07-20T20:17:40Z")]
    assert read_events(json.dumps(rows).encode(), lines=False, now=NOW).events.times.tolist() == [-5.0, -14_182_940.0]
    assert same_as_row_by_row(json.dumps(rows[:1]).encode())
