"""Attributes of items: found by words and tags, at a cost proportional to what was sent."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from felrec.service.engine.item_attributes import ItemAttributes, from_store
from felrec.service.engine.title_index import SEARCHABLE, TitleIndex, folded
from felrec.service.engine.types import Attributes
from felrec.store.protocol import Batch
from felrec.store.sqlite import SqliteStore
from stores import fitted, open_engine, post

UNFOLDS = "\N{ARABIC LIGATURE SALLALLAHOU ALAYHE WASALLAM}"  # 3 bytes, whose compatibility form has 18 letters
ITEMS = 200
MOST = 20  # bytes of memory per byte sent
PLAIN: dict[str, Any] = {"title": None, "tags": [], "available": True}
FIXED = 1_000  # bytes per item on top: an id, its entries of dicts, the heads of strings

SHAPES: dict[str, Callable[[int], dict[str, Any]]] = {
    "unfolding": lambda n: {"title": UNFOLDS * 990 + str(n)},
    "short unfolding": lambda n: {"title": UNFOLDS * 14 + str(n)},
    "one-letter words": lambda n: {"title": f"{n} " + "a b c d e f g h i j " * 45},
    "few one-letter words": lambda n: {"title": f"{n} " + "a b c d e f g h i j " * 3},
    "one long word": lambda n: {"title": f"{n}" + "x" * 990},
    "wide one-letter words": lambda n: {"title": f"{n} " + "𝔞 𝔟 𝔠 𝔡 " * 100},
    "combining marks": lambda n: {"title": f"{n}" + "a\u0301\u0316" * 300},
    "nothing but marks": lambda n: {"title": f"{n}" + "\u0301\u0316" * 490},
    "many tags": lambda n: {"tags": [f"{n * 100 + tag:x}" for tag in range(100)]},
    "tags of two items": lambda n: {"tags": [f"{n // 2 * 100 + tag:x}" for tag in range(100)]},
    "long tags": lambda n: {"tags": [f"{n * 100 + tag:x}".rjust(100, "t") for tag in range(100)]},
    "everything": lambda n: {"title": f"{n} a b" * 100, "tags": [f"{n * 100 + tag:x}" for tag in range(100)]},
}


@pytest.mark.parametrize("how", ["put", "at the start"])
@pytest.mark.parametrize("shape", SHAPES)
def test_attributes_cost_no_more_than_they_weigh(shape: str, how: str) -> None:
    bodies = {f"item-{n}": json.dumps(SHAPES[shape](n), ensure_ascii=False) for n in range(ITEMS)}
    sent = sum(len(body.encode()) for body in bodies.values())
    tracemalloc.start()
    try:
        read = {item: from_store(PLAIN | json.loads(body)) for item, body in bodies.items()}
        if how == "put":
            kept = ItemAttributes({}, [])
            for row, item in enumerate(bodies):
                kept.put(item, row, read[item])
        else:
            kept = ItemAttributes(read, list(bodies))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak <= MOST * sent + FIXED * ITEMS
    assert len(kept) == ITEMS


def test_a_store_with_titles_that_unfold_opens_and_serves(tmp_path: Path) -> None:
    engine = open_engine(tmp_path / "store")
    post(engine, [("ada", "item")])
    engine.close()
    title = PLAIN | {"title": UNFOLDS * 1_000}
    with SqliteStore(tmp_path / "store") as store:
        contents = store.load()
        poison = {f"poison-{n}": title for n in range(29)}
        store.commit(Batch(len(contents.users), len(contents.items), attributes=poison))
    model = fitted()
    tracemalloc.start()
    try:
        engine = open_engine(tmp_path / "store", model)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20e6  # it was 1.5 GB
    assert engine.item("poison-7").title == title["title"]
    assert {found.id for found in engine.search_items(UNFOLDS, 100)} == set(poison)
    assert engine.recommend("ada").items
    engine.close()


words = st.text("aAbé ßﬁ\u0301\ufdfa.", max_size=12)
changes = st.lists(st.tuples(st.sampled_from("xyz"), st.none() | words), max_size=12)


@given(changes, words)
def test_a_search_finds_what_looking_at_every_title_finds(changes: list[tuple[str, str | None]], typed: str) -> None:
    titles: dict[str, str | None] = dict(changes)
    index = TitleIndex({})
    for item, title in changes:
        index.put(item, title)
    wanted = folded(typed)
    expected = {
        item
        for item, title in titles.items()
        for at in range(len(folded(title or "")))
        if _starts_a_word(folded(title or ""), at) and folded(title or "").startswith(wanted, at)
    }
    assert set(index.search(typed, 9)) == expected
    assert set(TitleIndex(titles).search(typed, 9)) == expected


def _starts_a_word(text: str, at: int) -> bool:
    return (text[at].isalnum() or text[at] == "_") and (at == 0 or not text[at - 1].isalnum())


def test_many_titles_are_searched_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("felrec.service.engine.title_index._CHUNK", 8)
    titles = {f"item-{n}": f"Word{n:03} of many" for n in range(100)}
    built, grown = TitleIndex(titles), TitleIndex({})
    for item, title in sorted(titles.items(), key=lambda pair: pair[1][::-1]):
        grown.put(item, title)
    for index in (built, grown):
        assert index.search("word", 5) == [f"item-{n}" for n in range(5)]
        assert index.search("WORD04", 100) == [f"item-{n}" for n in range(40, 50)]
        assert len(index.search("of many", 100)) == 100
        for n in range(0, 100, 2):
            index.put(f"item-{n}", None)
        assert index.search("word", 3) == ["item-1", "item-3", "item-5"]
        assert len(index.search("of", 100)) == 50


def test_words_far_into_a_title_are_not_searched() -> None:
    index = TitleIndex({"a": "x" * (SEARCHABLE - 5) + " yes no"})
    assert index.search("yes", 5) == ["a"]
    assert index.search("no", 5) == []


def test_tags_follow_their_items() -> None:
    kept = ItemAttributes({"a": Attributes(tags=("t", "t", "u"))}, ["a", "b"])
    kept.put("b", 1, Attributes(tags=("t",)))
    assert kept.tagged(["t"]).tolist() == [0, 1]
    assert kept.tagged(["u", "t", "v"]).tolist() == [0, 1]
    kept.put("a", 0, Attributes(tags=("u",)))
    assert kept.tagged(["t"]).tolist() == [1]
    kept.remove_row("b", 1)
    assert kept.tagged(["t"]).tolist() == []
