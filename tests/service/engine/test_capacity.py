"""Limits of users, items and memory: what is new is refused one by one, what is known goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from felrec.errors import CapacityReached
from felrec.service.engine import capacity
from felrec.service.engine.engine import Engine
from felrec.service.engine.limits import Limits
from felrec.service.engine.memory import _group_limits, available_bytes, resident_bytes
from felrec.service.engine.types import Attributes, IdempotencyKey
from stores import Given, contents_of, open_engine, post, submit

KNOWN: list[Given] = [("ada", "tea", 1.0), ("bob", "jam", 2.0)]
Limited = Callable[..., Engine]


@pytest.fixture
def limited(tmp_path: Path) -> Limited:
    """An engine with two users and two items, opened again with limits."""

    def opened(**limits: Any) -> Engine:
        engine = open_engine(tmp_path / "store")
        post(engine, KNOWN)
        engine.close()
        return open_engine(tmp_path / "store", limits=Limits(**limits))

    return opened


def test_new_users_beyond_the_limit_are_rejected_one_by_one(limited: Limited) -> None:
    engine = limited(users=3)
    receipt = post(
        engine,
        [("eve", "tea", 9.0), ("ada", "jam", 8.0), ("new", "tea", 7.0), ("new", "jam", 6.0), ("late", "tea", 6.5)],
    )
    assert receipt.accepted == 3
    assert [row.row for row in receipt.rejected] == [0, 4]  # in time order "new" came first; rows are the sender's
    assert "the limit of 3 users is reached" in receipt.rejected[0].reason
    assert engine.health().users == engine.health().users_limit == 3
    assert engine.user("new").events == 2
    engine.close()


def test_a_row_that_is_rejected_for_its_item_takes_no_place_of_a_user(limited: Limited) -> None:
    engine = limited(users=3, items=2)
    receipt = post(engine, [("eve", "new item", 3.0), ("zoe", "tea", 4.0)])
    assert [(row.row, "items" in row.reason) for row in receipt.rejected] == [(0, True)]
    assert engine.user("zoe").events == 1
    engine.close()


def test_several_posts_of_one_commit_share_the_room(limited: Limited) -> None:
    engine = limited(users=3)
    futures = [submit(engine, [(f"new {n}", "tea", 3.0 + n)]) for n in range(20)]
    assert sum(future.result(60).accepted for future in futures) == 1
    engine.close()


def test_of_a_post_of_new_ids_alone_nothing_is_stored_not_even_its_key(limited: Limited, tmp_path: Path) -> None:
    engine, key = limited(users=2), IdempotencyKey("k", b"body")
    receipt = submit(engine, [("eve", "tea")], key).result(60)
    assert (receipt.accepted, len(receipt.rejected), receipt.events) == (0, 1, 2)
    engine.erase_user("bob").result()
    assert submit(engine, [("eve", "tea")], key).result(60).accepted == 1  # an erasure makes room
    engine.close()
    assert contents_of(tmp_path / "store").users == ["ada", None, "eve"]


def test_a_repeated_key_gets_the_first_receipt(limited: Limited) -> None:
    engine, key = limited(users=2), IdempotencyKey("k", b"body")
    first = submit(engine, [("eve", "tea"), ("ada", "tea")], key).result(60)
    assert (first.accepted, [row.row for row in first.rejected]) == (1, [0])
    engine.erase_user("bob").result()
    assert submit(engine, [("eve", "tea"), ("ada", "tea")], key).result(60) == first
    engine.close()


def test_beyond_the_memory_limit_everything_new_is_rejected(limited: Limited) -> None:
    engine = limited(memory=resident_bytes() // 2)
    receipt = post(engine, [("ada", "jam"), ("ada", "new"), ("new", "tea"), ("bob", "tea")])
    assert (receipt.accepted, [row.row for row in receipt.rejected]) == (2, [1, 2])
    assert "no memory for a new item" in receipt.rejected[0].reason
    assert engine.recommend("ada").items
    engine.close()


def test_memory_left_bounds_the_new_ids_of_one_post(limited: Limited) -> None:
    engine = limited(memory=resident_bytes() + 64 * 2**20)
    receipt = post(engine, [(f"user {n}", "tea") for n in range(10_000)])
    assert 0 < receipt.accepted < 10_000
    engine.close()


def test_attributes_of_new_items_are_limited(limited: Limited) -> None:
    engine = limited(items=2)
    engine.put_item("tea", Attributes("Tea")).result()
    engine.put_item("new", Attributes("New")).result()
    with pytest.raises(CapacityReached, match="the limit of 2 items is reached"):
        engine.put_item("newer", Attributes("Newer")).result()
    engine.put_item("jam", Attributes("Jam", available=False)).result()  # known by its events
    engine.put_item("new", Attributes("Newer")).result()
    engine.delete_item("new").result()
    assert engine.health().described_items == 3
    engine.close()


def test_beyond_the_memory_limit_attributes_may_change_but_not_grow(limited: Limited, tmp_path: Path) -> None:
    engine = limited()
    engine.put_item("tea", Attributes("Green tea", ("hot",))).result()
    engine.close()
    engine = open_engine(tmp_path / "store", limits=Limits(memory=1))
    assert engine.put_item("tea", Attributes("Black tea", ("hot",), available=False)).result().available is False
    assert engine.put_item("jam", Attributes(available=False)).result().available is False
    for item, longer in (("tea", Attributes("A much longer title")), ("jam", Attributes("Jam")), ("new", Attributes())):
        with pytest.raises(CapacityReached, match="no memory for attributes"):
            engine.put_item(item, longer).result()
    assert engine.item("tea").title == "Black tea"
    engine.close()


def test_without_limits_everything_fits(limited: Limited) -> None:
    engine = limited()
    assert post(engine, [(f"user {n}", f"item {n}") for n in range(1_000)]).accepted == 1_000
    health = engine.health()
    assert (health.users_limit, health.items_limit, health.memory_limit) == (None, None, None)
    engine.close()


def test_a_stored_receipt_of_many_rejected_rows_is_small(limited: Limited, tmp_path: Path) -> None:
    engine, key = limited(users=2), IdempotencyKey("k", b"body")
    events: list[Given] = [("ada", "tea"), *((f"new {n}", "tea") for n in range(9_999))]
    first = submit(engine, events, key).result(60)
    engine.close()
    (answer,) = contents_of(tmp_path / "store").answers
    assert len(answer.text) < 10 * len(events)  # as JSON it is more than ten times that
    engine = open_engine(tmp_path / "store")
    assert submit(engine, events, key).result(60) == first
    engine.close()


@pytest.mark.parametrize(
    ("own", "files", "limits"),
    [
        ("0::/a/b", {"a/b/memory.max": "max", "a/memory.max": "700", "memory.max": "900"}, [700, 900]),
        ("0::/", {"memory.max": "500"}, [500]),
        ("5:cpu:/x\n4:memory:/x", {"memory/x/memory.limit_in_bytes": "300"}, [300]),
        ("0::/gone", {}, []),
    ],
)
def test_the_memory_of_the_control_group(tmp_path: Path, own: str, files: dict[str, str], limits: list[int]) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{text}\n")
    (tmp_path / "own").write_text(own)
    assert list(_group_limits(tmp_path, tmp_path / "own")) == limits
    assert list(_group_limits(tmp_path, tmp_path / "missing")) == []
    assert resident_bytes() < available_bytes()


def test_items_put_together_share_the_room(limited: Limited, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = limited(items=3)
    put = {name: Attributes(name) for name in ("a", "tea", "b", "c", "d")}
    refused = engine.put_items(put).result()
    assert list(refused) == ["d"]  # tea has a row already
    assert "the limit of 3 items is reached" in refused["d"]
    assert engine.item("c").title == "c"
    engine.close()
    monkeypatch.setattr(capacity, "resident_bytes", lambda: 10_000_000)  # the real one falls when memory is given back
    engine = limited(memory=10_020_000)
    refused = engine.put_items({f"new-{n}": Attributes(f"new {n}") for n in range(50)}).result()
    assert len(refused) >= 40
    assert "no memory for attributes" in refused["new-49"]
    engine.close()
