"""Repeat: own items first, in the order that was asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from felrec.baselines.repeat import Repeat
from felrec.config import RepeatSettings
from felrec.data.events import Events
from felrec.data.histories import Pending
from felrec.data.log import InteractionLog
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
    assert popular == sorted(popular, key=lambda item: -model.counts.mass[item])


def test_choices_cover_both_orders_unless_given() -> None:
    assert {chosen["order"] for chosen, _ in Repeat().choices()} == {"recency", "frequency"}
    assert len(list(Repeat(RepeatSettings(order="recency")).choices())) == 8


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
