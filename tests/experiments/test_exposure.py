"""Deciles, Gini and coverage against cases worked by hand."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
import torch

from felrec.baselines.popularity import Popularity, PopularitySettings
from felrec.data.log import InteractionLog
from felrec.data.split import Split
from felrec.evaluation.lists import coverage, gini
from felrec.experiments.exposure import Exposure, decile_of, exposure, taken


def test_gini_against_its_definition() -> None:
    """Half the mean absolute difference of all pairs, divided by the mean."""
    counts = np.array([0, 3, 1, 7, 7, 0])
    pairs = np.abs(counts[:, None] - counts[None, :]).mean()
    assert gini(counts) == pytest.approx(pairs / 2 / counts.mean())
    assert gini(np.zeros(3, dtype=np.int64)) == 0.0


def test_coverage() -> None:
    assert coverage(np.array([0, 0, 5])) == pytest.approx(1 / 3)


def test_deciles_of_twenty_items() -> None:
    events = np.arange(20, 0, -1)
    assert decile_of(events).tolist() == [place // 2 for place in range(20)]


def test_equally_popular_items_share_a_decile() -> None:
    assert decile_of(np.array([9, 1, 1, 1, 1, 1, 1, 1, 1, 1])).tolist() == [0, *[5] * 9]


def made(users: list[int], items: list[int], train: int, validation: int) -> Split:
    frame = pl.DataFrame({"user": users, "item": items, "timestamp": range(len(users))})
    return Split(InteractionLog.from_frame(frame), train, train + validation)


def items_by_popularity() -> Split:
    """Item k has 30 - k events, k = 0 to 19; one user each event; then two test events."""
    items = [item for item in range(20) for _ in range(30 - item)]
    users = list(range(len(items)))
    return made([*users, 0, 9_999], [*items, 19, 777], train=len(items) - 10, validation=10)


def test_popularity_shows_the_first_half_only() -> None:
    split = items_by_popularity()
    model = Popularity(PopularitySettings())
    model.observe(split.log[: split.validation_end])
    told = exposure(model, split, exclude_seen=False).to_json()
    assert told["shown"] == 20  # two events, ten each
    assert told["catalogue"] == 20  # item 777 came too late to be shown
    assert told["coverage"] == 0.5
    assert told["deciles"] == [0.2] * 5 + [0.0] * 5
    assert told["gini"] == pytest.approx(0.5)


def test_what_users_had_is_left_out() -> None:
    """User 0 had item 0: the eleventh most popular takes its place."""
    split = items_by_popularity()
    model = Popularity(PopularitySettings())
    model.observe(split.log[: split.validation_end])
    counts = exposure(model, split, exclude_seen=True).counts
    assert counts.tolist() == [1, *[2] * 9, 1, *[0] * 9]


def test_what_was_taken_counts_only_what_could_be_shown() -> None:
    found = taken(items_by_popularity())
    assert found.deciles.tolist() == [0] * 9 + [1]
    assert found.counts.tolist() == [0] * 19 + [1]


def test_items_that_a_model_cannot_represent_are_not_shown() -> None:
    split = items_by_popularity()

    class Knows(Popularity):
        def score(self, queries, candidates):  # type: ignore[no-untyped-def]
            return super().score(queries, candidates).masked_fill(torch.from_numpy(candidates) > 3, -torch.inf)

    model = Knows(PopularitySettings())
    model.observe(split.log[: split.validation_end])
    assert exposure(model, split, exclude_seen=False).counts.tolist() == [2, 2, 2, 2, *[0] * 16]


def test_nothing_shown() -> None:
    assert Exposure(np.zeros(4, dtype=np.int64), np.zeros(10, dtype=np.int64)).to_json()["deciles"] == [0.0] * 10
