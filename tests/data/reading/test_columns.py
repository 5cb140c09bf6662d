from __future__ import annotations

import pytest

from felrec.data.reading.columns import Columns, Wanted
from felrec.errors import DataError


@pytest.mark.parametrize(
    "names",
    [
        ["user", "item", "timestamp"],
        ["userId", "movieId", "ts"],
        ["USER_ID", "Item_Id", "Time"],
        ["rating", "uid", "product", "datetime"],
        ["visitorid", "itemid", "date"],
        ["user_id:token", "item_id:token", "timestamp:float"],
        ["\ufeffuser id", "item-id", "event_time"],
    ],
)
def test_usual_names_are_found(names: list[str]) -> None:
    assert list(Wanted().find(names, "x").names()[:3]) == [name for name in names if name != "rating"]


def test_an_id_is_preferred_to_a_name() -> None:
    found = Wanted().find(["user", "user_id", "item", "itemId", "date", "timestamp"], "x")
    assert found == Columns("user_id", "itemId", "timestamp")


def test_named_columns_win() -> None:
    assert Wanted(user="rating", time="t0").find(["user", "rating", "item", "t0"], "x").names() == [
        "rating",
        "item",
        "t0",
    ]


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (Wanted(), r"^x\.csv: no column of users among 'a, item, ts'; name it with --user-col$"),
        (Wanted(user="b"), r"no column 'b' among .*--user-col"),
        (Wanted(user="item"), r"three different columns, not item, item, ts"),
    ],
)
def test_what_is_missing_is_said(wanted: Wanted, message: str) -> None:
    with pytest.raises(DataError, match=message):
        wanted.find(["a", "item", "ts"], "x.csv")
