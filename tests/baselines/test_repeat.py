"""Repeat: own items first, in the order that was asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from felrec.baselines.repeat import Repeat, RepeatSettings
from felrec.data.events import Events
from felrec.data.log import InteractionLog
from felrec.data.pending import Pending
from felrec.data.split import split_log
from felrec.evaluation.report import evaluate
from felrec.recommender import Queries

HOUR = 3600.0
# user 0 took 1, 1, 1, 2, 2, 3 hours apart; others took 5 and 6
EVENTS = Events.of([0, 0, 9, 0, 0, 9, 8, 0, 0], [1, 1, 5, 1, 2, 5, 6, 2, 3], HOUR * np.arange(9))


def ranking(model: Repeat, queries: Queries) -> list[int]:
    candidates = np.array([1, 2, 3, 5, 6], dtype=np.int32)
    scores = model.score(queries, candidates)[0].numpy()
    return [int(candidates[i]) for i in np.argsort(-scores)]


def taught(**settings: Any) -> Repeat:
    model = Repeat(RepeatSettings(half_life=100, **settings))
    model.observe(EVENTS)
    return model


def test_recency_puts_the_newest_own_item_first() -> None:
    assert ranking(taught(order="recency"), Queries.now(np.array([0]), 100 * HOUR)) == [3, 2, 1, 5, 6]


def test_frequency_puts_the_most_taken_first() -> None:
    assert ranking(taught(order="frequency"), Queries.now(np.array([0]), 100 * HOUR)) == [1, 2, 3, 5, 6]


def test_what_was_just_taken_comes_last() -> None:
    soon = Queries.now(np.array([0]), 8 * HOUR + 60)  # a minute after item 3
    assert ranking(taught(order="frequency"), soon) == [1, 2, 5, 6, 3]
    assert ranking(taught(order="frequency", pause=0), soon) == [1, 2, 3, 5, 6]


def test_pending_events_count_and_are_just_taken() -> None:
    asked = Queries(np.array([0], dtype=np.int32), np.array([100 * HOUR]), Pending.of([[5]]))
    assert ranking(taught(order="recency"), asked)[0] == 5
    assert ranking(taught(order="frequency"), asked)[:3] == [1, 2, 3]


def test_a_stranger_gets_what_is_popular() -> None:
    model = taught(order="recency")
    popular = ranking(model, Queries.now(np.array([77]), 100 * HOUR))
    assert popular == sorted(popular, key=lambda item: -model.counts.of(np.array([item]))[0])


def test_choices_cover_all_orders_unless_given() -> None:
    assert {chosen["order"] for chosen, _ in Repeat().choices()} == {"recency", "frequency", "blend"}
    assert len(list(Repeat(RepeatSettings(order="recency")).choices())) == 5


def test_an_old_favourite_is_not_forgotten() -> None:
    """However much a user took since then."""
    model = taught(order="frequency")
    others = np.arange(100, 600)
    model.observe(Events.of(np.zeros(500), others, 10 * HOUR + others))
    assert ranking(model, Queries.now(np.array([0]), 1000 * HOUR))[0] == 1


def test_a_blend_puts_a_craze_before_what_was_had_once() -> None:
    craze = Events.of(np.arange(100, 150), np.full(50, 6), 50 * HOUR + np.arange(50))
    ranked = {}
    for order in ("frequency", "blend"):
        model = taught(order=order)
        model.observe(craze)
        ranked[order] = ranking(model, Queries.now(np.array([0]), 100 * HOUR))
    assert ranked["frequency"] == [1, 2, 3, 6, 5]
    assert ranked["blend"][0] == 6
    assert ranked["blend"].index(1) < ranked["blend"].index(3)


def naive_ranking(events: Events, user: int, time: float, pending: list[int], order: str) -> list[int]:
    """The same from the whole log, one event at a time."""
    popular, count, last, when = Counter[int](), Counter[int](), dict[int, int](), dict[int, float]()
    for i, (u, item, t) in enumerate(zip(events.users, events.items, events.times, strict=True)):
        popular[int(item)] += 0.5 ** ((len(events) - 1 - i) / 50)
        if u == user:
            count[int(item)], last[int(item)], when[int(item)] = count[int(item)] + 1, i, float(t)
    for i, item in enumerate(pending):
        count[item], last[item], when[item] = count[item] + 1, len(events) + i, time

    def key(item: int) -> tuple[float, float, float]:
        if item not in count:
            return 1, 0, popular[item]
        if order == "recency":
            return 2, last[item], 0
        return (0, 0, 0) if time // 60 - when[item] // 60 < 30 else (2, count[item], popular[item])

    return sorted(sorted(popular), key=key, reverse=True)


@pytest.mark.parametrize("order", ["recency", "frequency"])
def test_it_equals_a_naive_loop(order: Any) -> None:
    generator = np.random.default_rng(1)
    events = Events.of(generator.integers(0, 6, 400), generator.integers(0, 25, 400), np.arange(400) * 700.0)
    model = Repeat(RepeatSettings(order=order, half_life=50))
    for block in events.blocks(37):
        model.observe(block)
    candidates = np.unique(events.items)
    for user in range(7):
        pending = generator.integers(0, 25, user).tolist()
        asked = Queries(np.array([user], dtype=np.int32), np.array([400 * 700.0]), Pending.of([pending]))
        naive = naive_ranking(events, user, 400 * 700.0, pending, order)
        scores = dict(zip(candidates.tolist(), model.score(asked, candidates)[0].tolist(), strict=True))
        assert [scores[item] for item in naive] == sorted(scores.values(), reverse=True)


@pytest.mark.realdata
@pytest.mark.parametrize(
    ("name", "order", "half_life", "hits"),
    [
        ("jodie_wikipedia", "recency", 100, 0.884),
        ("jodie_wikipedia", "frequency", 100, 0.874),
    ],
)
def test_figures_measured_independently(
    real_log: Callable[[str], InteractionLog], name: str, order: Any, half_life: float, hits: float
) -> None:
    """Edits of a page follow at once, so nothing is paused here."""
    model = Repeat(RepeatSettings(order=order, half_life=half_life, pause=0))
    report = evaluate(model, split_log(real_log(name)), model="repeat", cache="reset", exclude_seen="no")
    assert report.metric("hr@10") == pytest.approx(hits, abs=0.01)


@pytest.mark.parametrize("order", ["recency", "frequency", "blend"])
def test_events_of_a_block_count_as_they_will_when_it_is_taken_in(order: str) -> None:
    """Also how long ago each was: what was taken hours ago in the same block is not what was just taken."""
    before = Events.of([0, 0, 0, 1], [1, 1, 1, 2], HOUR * np.array([100.0, 101.0, 102.0, 102.0]))
    waiting = Pending.of([[1, 1, 1]])
    asked = Queries(np.array([0], dtype=np.int32), np.array([150 * HOUR]), waiting, before.times[:3])
    pending, taken_in = taught(order=order), taught(order=order)
    taken_in.observe(before)
    pending.observe(Events.of([1], [2], [102 * HOUR]))
    assert ranking(pending, asked)[0] == ranking(taken_in, Queries.now(np.array([0]), 150 * HOUR))[0] == 1
