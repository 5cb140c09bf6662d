"""Rules of lists: what is left out, how many of a kind, when an item may be shown, and places for new items."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from felrec.errors import InvalidRequest
from felrec.service.engine.engine import Engine
from felrec.service.engine.types import Attributes, Question
from stores import fitted, made_up, open_engine, post

NOW = 1e9 + 400  # a little after the newest event


@pytest.fixture(params=["felrec-q", "felrec-s", "popularity"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    engine = open_engine(tmp_path / "s", fitted(request.param))
    post(engine, made_up(300))
    engine._state._now = lambda: NOW
    yield engine
    engine.close()


def ids(engine: Engine, k: int = 10, **options: Any) -> list[str]:
    return [item.id for item in engine.recommend("user 1", k, exclude_seen=False, **options).items]


def put(engine: Engine, item: str, **attributes: Any) -> None:
    engine.put_item(item, Attributes(**attributes)).result()


def test_excluded_items_give_way_to_the_next(engine: Engine) -> None:
    best = ids(engine, 8)
    assert ids(engine, 5, exclude=[best[0], best[2], "unknown"]) == [best[1], *best[3:7]]


def test_pages_follow_one_another_without_repeating(engine: Engine) -> None:
    best = ids(engine, 12)
    assert [one for offset in (0, 4, 8) for one in ids(engine, 4, offset=offset)] == best
    first = ids(engine, 4)
    assert ids(engine, 4, exclude=first) == best[4:8]


def test_tags_with_and_or_and_not(engine: Engine) -> None:
    best = ids(engine, 4)
    for item, tags in zip(best, (("a",), ("a", "b"), ("b",), ("a", "b", "c")), strict=True):
        put(engine, item, tags=tags)
    assert ids(engine, tags=["a", "c"]) == [best[0], best[1], best[3]]
    assert ids(engine, all_tags=["a", "b"]) == [best[1], best[3]]
    assert ids(engine, tags=["a", "b"], no_tags=["c"]) == best[:3]
    assert ids(engine, all_tags=["a", "b"], no_tags=["c"]) == [best[1]]
    assert ids(engine, all_tags=["a"], candidates=best[1:3]) == [best[1]]
    assert ids(engine, all_tags=["a", "unknown"]) == []
    assert set(ids(engine, 20, no_tags=["a", "b"])).isdisjoint(best)


def test_at_most_so_many_of_a_tag(engine: Engine) -> None:
    best = ids(engine, 20)
    for item in best[:12]:
        put(engine, item, tags=("soda",))
    assert ids(engine, 6, per_tag=2) == [*best[:2], *best[12:16]]
    assert ids(engine, 3, per_tag=2, offset=2) == best[12:15]
    assert ids(engine, 6, per_tag=2, tags=["soda"]) == best[:2]


def test_of_a_group_only_the_best_is_listed(engine: Engine) -> None:
    best = ids(engine, 9)
    for item in best[1:5]:
        put(engine, item, variant_of=best[0])
    assert ids(engine, 4) == [best[0], *best[5:8]]
    put(engine, best[0], available=False)
    assert ids(engine, 4) == [best[1], *best[5:8]]
    for item in best[1:5]:
        put(engine, item)
    assert ids(engine, 4) == best[1:5]


def test_an_item_is_shown_between_two_times(engine: Engine) -> None:
    best, clock = ids(engine, 3), {"now": NOW}
    engine._state._now = lambda: clock["now"]
    put(engine, best[0], expires=NOW + 10)
    put(engine, best[1], available_from=NOW + 5)
    shown: Callable[[], set[str]] = lambda: set(ids(engine, 20)) & set(best)  # noqa: E731
    assert shown() == {best[0], best[2]}
    clock["now"] = NOW + 5
    assert shown() == set(best)
    clock["now"] = NOW + 10
    assert shown() == {best[1], best[2]}
    clock["now"] = NOW + 4  # the clock was set back
    assert shown() == {best[0], best[2]}


def test_times_and_groups_survive_a_restart(tmp_path: Path) -> None:
    engine = open_engine(tmp_path / "s")
    post(engine, made_up(50))
    put(engine, "item 1", title="One", expires=NOW + 10, available_from=5.0, variant_of="item 2")
    before = engine.item("item 1")
    engine.close()
    engine = open_engine(tmp_path / "s")
    assert engine.item("item 1") == before
    assert (before.expires, before.available_from, before.variant_of) == (NOW + 10, 5.0, "item 2")
    assert engine._state.attributes.groups == 1
    engine.close()


def test_lists_for_everybody(engine: Engine) -> None:
    everything = Question(k=30)
    popular = engine.list_items("popular", everything)
    assert [item.value for item in popular] == sorted((item.value or 0 for item in popular), reverse=True)
    assert all(item.value == item.events for item in popular)
    newest = engine.list_items("newest", everything)
    rows = [engine._state.items.row(item.id) for item in newest]
    assert rows == sorted(rows, reverse=True)
    trending = engine.list_items("trending", everything)
    assert {item.id for item in trending} == {item.id for item in popular}
    assert engine.list_items("popular", Question(k=3, offset=2)) == popular[2:5]
    put(engine, popular[0].id, available=False)
    put(engine, popular[1].id, tags=("a",))
    assert [item.id for item in engine.list_items("popular", Question(k=5, tags=["a"]))] == [popular[1].id]
    assert engine.list_items("popular", Question(k=2))[0].id == popular[1].id
    assert engine.list_items("popular", Question(k=2, exclude=[popular[1].id]))[0].id == popular[2].id


def test_popular_within_the_last_hours(engine: Engine) -> None:
    post(engine, [("ada", "fresh", NOW - 1), ("bob", "fresh", NOW - 1)])
    engine._state._now = lambda: NOW + 3_590
    found = engine.list_items("popular", Question(k=30), hours=1.0)
    assert [(item.id, item.value) for item in found][:1] == [("fresh", 2)]
    assert len(engine.list_items("popular", Question(k=30), hours=0.0001)) == 0
    assert [item.id for item in engine.list_items("newest", Question(k=30), hours=1.0)] == ["fresh"]


def test_items_without_events_get_places_by_lot(engine: Engine) -> None:
    best = ids(engine, 10)
    for n in range(5):
        put(engine, f"cold {n}", title=f"Cold {n}", tags=("odd",) if n % 2 else ())
    assert ids(engine, 10) == best
    found = engine.recommend("user 1", 10, exclude_seen=False, explore=0.5).items
    cold = [item for item in found if item.explored]
    assert 1 <= len(cold) <= 5
    assert len({item.id for item in cold}) == len(cold)
    assert [item.id for item in found if not item.explored] == best[: 10 - len(cold)]
    again = engine.recommend("user 1", 10, exclude_seen=False, explore=0.5).items
    assert again == found  # the same question, the same answer
    others = [engine.recommend(f"user {n}", 10, explore=0.5).items for n in range(8)]
    assert len({tuple(item.id for item in items if item.explored) for items in others}) > 1
    everything = engine.recommend("user 1", 10, explore=1.0, tags=["odd"]).items
    assert {item.id for item in everything} == {"cold 1", "cold 3"}
    assert not any(
        item.explored for item in engine.recommend("user 1", 10, explore=1.0, no_tags=["odd"], candidates=best).items
    )


def test_an_item_with_its_first_event_is_no_longer_explored(engine: Engine) -> None:
    put(engine, "cold", title="Cold")
    assert engine.recommend("user 1", 3, explore=1.0).items[0].id == "cold"
    post(engine, [("bob", "cold", NOW)])
    assert not any(item.explored for item in engine.recommend("user 1", 3, explore=1.0).items)
    put(engine, "hidden", available=False)
    put(engine, "gone")
    engine.delete_item("gone").result()
    assert not any(item.explored for item in engine.recommend("user 1", 3, explore=1.0).items)


def test_what_is_out_of_range_is_refused(engine: Engine) -> None:
    for options in ({"per_tag": 0}, {"explore": 1.5}, {"offset": 10_000}, {"exclude": ["x"] * 10_001}):
        with pytest.raises(InvalidRequest):
            engine.recommend("user 1", 5, **options)
