"""Attributes of many items at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from felrec.errors import InvalidRequest, NotFound
from felrec.service.engine import engine as engine_module
from felrec.service.engine.types import Attributes
from stores import open_engine, post


def test_many_items_are_put_and_still_there_after_a_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "_PUT_TOGETHER", 7)
    engine = open_engine(tmp_path / "store")
    post(engine, [("ada", "item-3"), ("bob", "item-4")])
    before = engine.health().commits
    items = {f"item-{n}": Attributes(f"Title {n}", ("even",) if n % 2 == 0 else ()) for n in range(20)}
    assert engine.put_items(items).result() == {}
    assert engine.health().commits == before + 3
    engine.close()
    engine = open_engine(tmp_path / "store")
    assert engine.item("item-19").title == "Title 19"
    assert [item.id for item in engine.recommend("ada", tags=["even"]).items] == ["item-4"]
    assert [item.id for item in engine.search_items("title 3")] == ["item-3"]
    engine.close()


def test_posts_have_their_turn_between_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "_PUT_TOGETHER", 1)
    engine = open_engine(tmp_path / "store")
    last = f"item-{299}"
    put = engine.put_items({f"item-{n}": Attributes("t") for n in range(300)})
    post(engine, [("ada", "tea")])  # returns when it is visible
    with pytest.raises(NotFound):
        engine.item(last)
    put.result()
    assert engine.item(last).title == "t"
    engine.close()


def test_too_much_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    engine = open_engine(tmp_path / "store")
    with pytest.raises(InvalidRequest, match="put at most 10,000"):
        engine.put_items({str(n): Attributes() for n in range(10_001)})
    with pytest.raises(InvalidRequest, match="too long"):
        engine.put_items({"a": Attributes("fine"), "b": Attributes("x" * 1_001)})
    assert engine.health().described_items == 0
    engine.close()
