from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from felrec.baselines.popularity import DecayedPopularity, DecayedPopularitySettings, Popularity
from felrec.data.events import Events
from felrec.data.log import InteractionLog
from felrec.data.split import split_log
from felrec.evaluation.report import evaluate
from felrec.recommender import Queries

ANYONE = Queries.now(np.array([0]), 0.0)


def decayed(half_life: float) -> DecayedPopularity:
    return DecayedPopularity(DecayedPopularitySettings(half_life=half_life))


def test_decay_is_by_event_whatever_the_blocks() -> None:
    events = Events.of([0] * 6, [0, 1, 0, 2, 2, 1], range(6))
    expected = [
        0.5 ** (5 / 2) + 0.5 ** (3 / 2),
        0.5 ** (4 / 2) + 1,
        0.5 ** (2 / 2) + 0.5 ** (1 / 2),
    ]
    for size in (1, 2, 6):
        model = decayed(2)
        for block in events.blocks(size):
            model.observe(block)
        assert model.score(ANYONE, np.arange(3, dtype=np.int32))[0].tolist() == pytest.approx(expected)


def test_the_choices_have_the_half_lives_they_say() -> None:
    halves = [(chosen["half_life"], model.counts.half_life) for chosen, model in DecayedPopularity().choices()]  # type: ignore[attr-defined]
    assert len(halves) == 8
    assert all(said == has for said, has in halves)


@pytest.mark.realdata
@pytest.mark.parametrize(
    ("name", "half_life", "rank", "hits", "new_item_hits"),
    [
        ("movietweetings", None, 0.129, 0.078, 0.000),
        ("movietweetings", 300, 0.147, 0.209, 0.392),
        ("ml-100k", None, 0.214, 0.041, None),
        ("ml-100k", 10_000, 0.209, 0.046, None),
        ("jodie_wikipedia", None, 0.479, 0.059, 0.000),
    ],
)
def test_figures_measured_independently(
    real_log: Callable[[str], InteractionLog],
    name: str,
    half_life: float | None,
    rank: float,
    hits: float,
    new_item_hits: float | None,
) -> None:
    """Another implementation gave these; it aged counts by the block, which explains the last digit."""
    model = Popularity() if half_life is None else decayed(half_life)
    report = evaluate(model, split_log(real_log(name)), model=name, cache="reset", exclude_seen="no")
    assert report.metric("rank") == pytest.approx(rank, abs=0.0025)
    assert report.metric("hr@10") == pytest.approx(hits, abs=0.006)
    if new_item_hits is not None:
        assert report.metric("hr@10", "new_items") == pytest.approx(new_item_hits, abs=0.008)
