"""Rows without the value that repeats at their end, against plain arrays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from felrec.data.tables import trimmed_values
from felrec.data.tables.packed_rows import PackedColumn, PackedRows
from felrec.data.tables.trimmed_values import TrimmedValues, between, trimmed, trimmed_rows

WIDTH = 6
cells = st.sampled_from([0, -1, 1.5, np.nan, -0.0])
tables = st.lists(st.lists(cells, min_size=WIDTH, max_size=WIDTH), max_size=8)
DTYPES = ["<f4", "<f8"]


def table(rows: list[list[float]], dtype: str) -> NDArray[np.floating]:
    return np.array(rows, dtype=dtype).reshape(len(rows), WIDTH)


@pytest.mark.parametrize("dtype", DTYPES)
@given(rows=tables, data=st.data())
def test_any_rows_have_the_same_bits(dtype: str, rows: list[list[float]], data: st.DataObject) -> None:
    values = table(rows, dtype)
    short = TrimmedValues.of(values)
    assert short.full(WIDTH).tobytes() == values.tobytes()
    numbers = st.integers(0, max(0, len(rows) - 1))
    picked = np.array(data.draw(st.lists(numbers) if rows else st.just([])), dtype=np.int64)
    assert short.picked(picked).full(WIDTH).tobytes() == values[picked].tobytes()
    first, end = sorted((data.draw(numbers), data.draw(numbers)))
    assert short.between(first, end).full(WIDTH).tobytes() == values[first:end].tobytes()
    twice = TrimmedValues.joined([short, short.picked(picked)])
    assert twice.full(WIDTH).tobytes() == np.concatenate([values, values[picked]]).tobytes()


def test_only_cells_that_differ_from_the_last_are_kept() -> None:
    short = TrimmedValues.of(np.array([[3, 4, 0, 0], [0, 0, 0, 0], [1, 2, 3, 4]]))
    assert short.used.tolist() == [2, 0, 3]
    assert short.cells.tolist() == [3, 4, 1, 2, 3]


@given(rows=st.lists(st.lists(st.integers(-1, 3), min_size=WIDTH, max_size=WIDTH), min_size=1, max_size=6))
def test_packed_rows_are_trimmed_as_they_are(rows: list[list[int]]) -> None:
    packed = PackedRows(WIDTH, {"other": (np.int32, -1), "count": (np.float32, 0)})
    other = np.array(rows, dtype=np.int32)
    packed.write(np.arange(len(rows)), {"other": other, "count": (other + 1).astype(np.float32)})
    asked = np.arange(len(rows) + 2)[::-1]  # two that were never written
    for name in packed.columns:
        column = PackedColumn(packed, name)
        assert trimmed_rows(column, asked).full(WIDTH).tobytes() == column[asked].tobytes()


@pytest.mark.parametrize("at_once", [1, 2, 100])
def test_rows_of_a_change_are_in_order_and_can_be_cut_out(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trimmed_values, "_AT_ONCE", at_once)
    change = trimmed({"a": (np.array([9, 4, 6]), np.array([[9, 0], [4, 0], [6, 0]]))})
    assert change["a"][0].tolist() == [4, 6, 9]
    rows, values = between(change, 5, 10)["a"]
    assert (rows.tolist(), values.full(2).tolist()) == ([6, 9], [[6, 0], [9, 0]])
    assert between(change, 7, 9) == {}
