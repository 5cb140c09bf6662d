"""Reasons are facts: counts that can be checked by hand in a small world of groceries."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import felrec
from felrec.answers.types import Reason
from felrec.data.events import EventColumns
from felrec.service.engine.engine import Engine
from felrec.service.engine.types import Attributes
from stores import open_engine, post

DAY = 86_400
START = 1_700_000_000.0


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """Twelve people take bread, then butter; ada takes bread five times; kiwis are new; others take other things."""
    path: Path = tmp_path_factory.mktemp("groceries") / "s"
    engine = open_engine(path, felrec.load_pretrained())
    events: list[tuple[str, str, float]] = [(f"other {n % 30}", f"thing {n * 7 % 40}", START + n) for n in range(400)]
    for n in range(12):
        events += [(f"person {n}", "bread", START + 1_000 + 10 * n), (f"person {n}", "butter", START + 1_001 + 10 * n)]
    events += [("ada", "bread", START + day * DAY) for day in (1, 2, 3, 4, 5)]
    events += [("person 0", "kiwi", START + 12 * DAY), ("other 1", "kiwi", START + 12 * DAY + 1)]
    events += [(f"other {n % 30}", "bread", START + 13 * DAY + n) for n in range(25)]
    events.sort(key=lambda event: event[2])
    post(engine, events)
    engine.put_item("bread", Attributes("Brown bread")).result()
    yield engine
    engine.close()


def why(engine: Engine, user: str, item: str) -> dict[str, Reason]:
    (reasons,) = engine.why(user, [item], k=9)
    assert [reason.share for reason in reasons] == sorted((reason.share for reason in reasons), reverse=True)
    assert sum(reason.share for reason in reasons) <= 1.01
    return {reason.kind: reason for reason in reasons}


def test_what_the_user_had_before(engine: Engine) -> None:
    again = why(engine, "ada", "bread")["again"]
    assert (again.events, again.last) == (5, START + 5 * DAY)
    assert again.text == "you had it 5 times, last 8 days ago"
    assert again.items == ()
    assert again.share > 0.2  # ada had nothing else: what links bread to bread says the same


def test_who_had_both(engine: Engine) -> None:
    reasons = why(engine, "ada", "butter")
    (bread,) = [own for own in reasons["together"].items if own.id == "bread"]
    assert (bread.title, bread.people) == ("Brown bread", 12)
    assert "12 people had it and Brown bread" in reasons["together"].text
    assert "again" not in reasons


@pytest.mark.parametrize(("signal", "reach", "how"), [("follows", 2, "right"), ("ahead", 10, "soon")])
def test_what_comes_after(tmp_path: Path, signal: str, reach: int, how: str) -> None:
    log = felrec.synthetic_log(3_000, n_users=30, n_items=40, seed=4).log
    model = felrec.fit(felrec.split_log(log), epochs=1, signals=f"trend,{signal}")
    engine = open_engine(tmp_path / "s", model)
    found = 0
    for user in model.user_ids.series.head(10).to_list():
        newest = [event.id for event in engine.user(str(user), reach).history]
        items = [item.id for item in engine.recommend(str(user), 5).items]
        for reasons in engine.why(str(user), items):
            for reason in reasons:
                if reason.kind == "after":
                    found += 1
                    assert {own.id for own in reason.items} <= set(newest)
                    assert reason.text in {f"{often} {how} after {reason.items[0].id}" for often in ("often", "taken")}
    engine.close()
    assert found


def test_one_person_is_not_often_and_the_user_is_nobody_else(tmp_path: Path) -> None:
    engine = open_engine(tmp_path / "s", felrec.load_pretrained())
    post(engine, [("ada", "tea", START), ("ada", "jam", START + 1), ("bob", "tea", START + 2)])
    for item in ("tea", "jam"):
        assert "together" not in why(engine, "ada", item)  # only ada herself had both
    assert "one person had it and tea" in {reason.text for reason in engine.why("bob", ["jam"], k=9)[0]}
    assert "often" not in str(engine.why("bob", ["jam"], k=9))
    engine.close()


def test_what_users_rejected_is_no_reason(tmp_path: Path) -> None:
    engine = open_engine(tmp_path / "s", felrec.load_pretrained())
    people = [f"person {n}" for n in range(8)]
    taken = [(person, item) for person in people for item in ("tea", "jam")]
    users, items = zip(*taken, ("ada", "tea"), ("ada", "jam"), ("cyd", "tea"), ("cyd", "jam"), strict=True)
    weights = np.array([1] * 17 + [-1, 1, -1], dtype=np.float32)  # ada and cyd rejected jam
    engine.submit(EventColumns(list(users), list(items), START + np.arange(20.0), weights=weights)).result(60)
    reasons = why(engine, "ada", "jam")
    assert "again" not in reasons
    (tea,) = [own for own in reasons["together"].items if own.id == "tea"]
    assert tea.people == 8
    engine.close()


def test_a_new_item_and_the_people_who_have_items_of_the_user(engine: Engine) -> None:
    reasons = why(engine, "ada", "kiwi")
    assert reasons["new"].events == 2
    assert reasons["new"].people == 2  # person 0 has had bread, and so has other 1
    assert reasons["new"].text == "new, and 2 people with items of yours had it"


def test_events_of_the_last_day(engine: Engine) -> None:
    trending = why(engine, "a stranger", "bread")["trending"]
    assert (trending.events, trending.text) == (25, "25 events in the last 24 hours")


def test_a_stranger_gets_no_reason_from_a_history(engine: Engine) -> None:
    for item in ("bread", "butter", "kiwi", "thing 1"):
        assert set(why(engine, "a stranger", item)) <= {"trending", "popular", "new"}


def test_unknown_items_have_no_reasons_and_answers_keep_the_order(engine: Engine) -> None:
    assert engine.why("ada", ["nothing", "bread", "nothing", "bread"])[::2] == [(), ()]
    both = engine.why("ada", ["butter", "bread"])
    assert both == [engine.why("ada", ["butter"])[0], engine.why("ada", ["bread"])[0]]
    assert all(len(reasons) <= 1 for reasons in engine.why("ada", ["butter", "bread"], k=1))
