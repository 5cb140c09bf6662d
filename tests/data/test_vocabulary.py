from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from felrec.data.vocabulary import Vocabulary
from felrec.errors import DataError

SMALL = st.integers(-5, 40)
WORDS = st.text("ab1é", min_size=1, max_size=2)


@given(st.lists(st.lists(SMALL, max_size=6), max_size=6), st.lists(SMALL, max_size=9))
def test_a_vocabulary_of_integers_is_a_dictionary(batches: list[list[int]], asked: list[int]) -> None:
    vocabulary, model = Vocabulary(), dict[int, int]()
    for batch in batches:
        rows = vocabulary.add(batch)
        assert rows.tolist() == [model.setdefault(key, len(model)) for key in batch]
    assert vocabulary.rows(asked).tolist() == [model.get(key, -1) for key in asked]
    assert vocabulary.rows([str(key) for key in asked]).tolist() == [model.get(key, -1) for key in asked]
    assert vocabulary.series.to_list() == list(model) == vocabulary.ids(range(len(model)))
    assert len(vocabulary) == len(model)


@given(st.lists(WORDS), st.lists(st.one_of(WORDS, SMALL)))
def test_a_vocabulary_of_strings_is_a_dictionary(ids: list[str], asked: list[int | str]) -> None:
    model = {key: row for row, key in enumerate(dict.fromkeys(["x", *ids]))}
    vocabulary = Vocabulary(["x", *ids])
    assert vocabulary.ids(range(len(vocabulary))) == list(model)
    assert vocabulary.rows(asked).tolist() == [model.get(str(key), -1) for key in asked]


@given(st.lists(SMALL, min_size=1), st.lists(st.one_of(WORDS, SMALL)))
def test_adding_any_id_keeps_every_row(before: list[int], more: list[int | str]) -> None:
    vocabulary = Vocabulary(before)
    rows = vocabulary.rows(before)
    added = vocabulary.add(more)
    assert vocabulary.rows(before).tolist() == rows.tolist()
    assert vocabulary.rows(more).tolist() == added.tolist()
    assert list(map(str, vocabulary.ids(added))) == list(map(str, more))


def test_a_string_that_is_no_plain_integer_is_unknown_to_integers() -> None:
    vocabulary = Vocabulary([7, 0])
    assert vocabulary.rows(["7", "07", "+7", " 7", "7.0", "x", "0", "-0", "9" * 30]).tolist() == [
        0,
        *[-1] * 5,
        1,
        -1,
        -1,
    ]


def test_an_integer_beyond_64_bits_makes_strings() -> None:
    vocabulary = Vocabulary([1])
    assert vocabulary.add([2**70, 1]).tolist() == [1, 0]
    assert vocabulary.ids([0, 1]) == ["1", str(2**70)]


def test_rows_are_int32_and_numpy_ids_are_read() -> None:
    vocabulary = Vocabulary(np.array([5, 6]))
    assert vocabulary.rows(np.array([6, 9])).dtype == np.int32
    assert vocabulary.rows(pl.Series([6])).tolist() == [1]
    assert vocabulary.add([np.int64(8)]).tolist() == [2]  # type: ignore[list-item]


def test_prefix_does_not_grow_with_the_whole() -> None:
    whole = Vocabulary([1, 2, 3])
    whole.add([4])
    first = whole.prefix(2)
    whole.add([5])
    assert first.ids(range(len(first))) == [1, 2]
    assert first.add([9]).tolist() == [2]
    assert whole.rows([9]).tolist() == [-1]


@pytest.mark.parametrize("ids", [[3, 1, 2], ["b", "é", "a,b"], []])
def test_save_and_load(tmp_path: Path, ids: list[int] | list[str]) -> None:
    Vocabulary(ids).save(tmp_path / "ids.parquet")
    loaded = Vocabulary.load(tmp_path / "ids.parquet")
    assert loaded.ids(range(len(loaded))) == ids


def test_load_refuses_what_was_not_saved(tmp_path: Path) -> None:
    (tmp_path / "text.parquet").write_text("id\n1\n")
    pl.DataFrame({"id": [1, 1]}).write_parquet(tmp_path / "twice.parquet")
    for name in ("text.parquet", "twice.parquet", "none.parquet"):
        with pytest.raises(DataError, match=name):
            Vocabulary.load(tmp_path / name)


@pytest.mark.parametrize("bad", [[None], [1.5], [True], [b"x"]])
def test_other_ids_are_refused(bad: list[int]) -> None:
    with pytest.raises(DataError, match="integer or a string"):
        Vocabulary([1]).add(bad)


@pytest.mark.parametrize("row", [-1, 2])
def test_rows_that_do_not_exist_are_refused(row: int) -> None:
    with pytest.raises(IndexError):
        Vocabulary([1, 2]).ids([row])
