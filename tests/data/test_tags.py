"""Tags of items from files, frames and dictionaries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest

from felrec.data.tags import read_tags
from felrec.data.vocabulary import Vocabulary
from felrec.errors import DataError

PAIRS = [(1, "a"), (1, "b"), (2, "a"), (4, "c")]


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_every_shape_gives_the_same_pairs(tmp_path: Path) -> None:
    lists = pl.DataFrame({"item_id": [1, 2, 4], "tags": [["a", "b"], ["a"], ["c"]]})
    lists.write_parquet(tmp_path / "tags.parquet")
    sources: list[Any] = [
        write(tmp_path / "tags.csv", "movieId,title,genres\n1,x,a|b\n2,y,a\n3,z,\n4,w,c|c\n"),
        write(tmp_path / "tags.tsv", "item\ttag\n1\ta\n1\tb\n2\t a \n4\tc\n"),
        tmp_path / "tags.parquet",
        lists,
        pd.DataFrame({"item": [1, 1, 2, 4], "category": ["a", "b", "a", "c"]}),
        {1: ["a", "b"], 2: ["a"], 4: ["c"]},
    ]
    found = [read_tags(source) for source in sources]
    assert [sorted(one.frame.rows()) for one in found] == [PAIRS] * len(sources)
    assert len({one.fingerprint for one in found}) == 1
    assert read_tags({1: ["a"]}).fingerprint != found[0].fingerprint


def test_rows_of_a_log_have_tags_whatever_the_type_of_their_ids() -> None:
    tags = read_tags({1: ["a", "b"], 2: ["a"], 4: ["c"]})
    for ids in ([4, 9, 1], ["4", "nine", "1"]):
        rows = tags.of(Vocabulary(ids))
        assert sorted(rows.items.tolist()) == [0, 2, 2]
        assert len(set(rows.tags.tolist())) == 3


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("t.csv", "item,title\n1,x\n", "no column of tags among 'item, title'"),
        ("t.csv", "thing,tags\n1,x\n", "no column of items"),
        ("t.csv", "item,tags\n,x\n", "row 1"),
        ("t.csv", "item,tags\n1,x,y\n", "row 1: more fields"),
        ("t.txt", "item,tags\n1,x\n", "unknown file name ending"),
        ("t.parquet", "item,tags\n1,x\n", "not a Parquet file"),
    ],
)
def test_what_cannot_be_read(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_tags(write(tmp_path / name, text))


def test_other_things_are_refused() -> None:
    with pytest.raises(DataError, match="list is not a file"):
        read_tags([1, 2])
