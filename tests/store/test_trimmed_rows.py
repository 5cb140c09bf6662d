"""Rows that are trimmed while a store is read, against arrays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from felrec.store import state_rows, trimmed_rows
from felrec.store.trimmed_rows import TrimmedRows
from stores import contents_of, fitted, made_up, open_engine, post, state_of

ROWS, CELLS = 9, 6
values = st.lists(st.sampled_from([0, -1, 1.5, np.nan, np.inf]), min_size=CELLS, max_size=CELLS)
writes = st.lists(st.lists(st.tuples(st.integers(0, ROWS - 1), values), min_size=1, max_size=5), max_size=6)


@pytest.mark.parametrize("dtype", ["<f4", "<f8"])
@pytest.mark.parametrize("at_once", [1, 4, 1_000])
@given(writes=writes)
def test_rows_have_the_bits_that_were_written_last(
    dtype: str, at_once: int, writes: list[list[tuple[int, list[float]]]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trimmed_rows, "_AT_ONCE", at_once)
        trimmed, plain = TrimmedRows((ROWS, 2, 3), dtype), np.zeros((ROWS, 2, 3), dtype)
        for write in writes:
            latest = dict(write)
            rows, of_rows = np.array([*latest]), np.array([*latest.values()], dtype=dtype).reshape(-1, 2, 3)
            trimmed[rows], plain[rows] = of_rows, of_rows
        assert np.asarray(trimmed).tobytes() == plain.tobytes()
        assert trimmed[np.array([4, 0])].tobytes() == plain[[4, 0]].tobytes()
        assert trimmed[2:5].tobytes() == plain[2:5].tobytes()
        assert (trimmed.shape, trimmed.dtype, len(trimmed)) == (plain.shape, plain.dtype, ROWS)


@pytest.mark.parametrize("name", ["felrec-s", "felrec-q"])
def test_a_store_with_large_tables_opens_with_the_same_state(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = open_engine(tmp_path / "store.sqlite", fitted(name))
    for number in range(3):
        post(engine, made_up(40, start=1e9 + 1_000 * number, seed=number))
    expected = state_of(engine)
    engine.close()
    monkeypatch.setattr(state_rows, "_LARGE", 0)
    assert any(isinstance(rows, TrimmedRows) for rows in contents_of(tmp_path / "store.sqlite").state.values())
    again = open_engine(tmp_path / "store.sqlite", fitted(name))
    assert state_of(again) == expected
    again.close()
