"""Ranks and metrics against hand-made cases and a naive loop, ties included."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from felrec.evaluation.bootstrap import paired_interval
from felrec.evaluation.metrics import average, draw_negatives, event_metrics, ranks, sampled_ranks


@pytest.mark.parametrize(
    ("scores", "target", "rank"),
    [
        ([3.0, 2.0, 1.0], 0, 0),
        ([3.0, 2.0, 1.0], 2, 2),
        ([1.0, 1.0, 1.0], 1, 1),  # all equal: in the middle
        ([5.0, 1.0, 1.0], 1, 1.5),
        ([-math.inf, 1.0, -math.inf], 0, 1.5),  # unrepresentable: below everything, tied with its kind
        ([math.nan, 1.0, 2.0], 1, 1),  # left out
    ],
)
def test_rank_counts_ties_as_half(scores: list[float], target: int, rank: float) -> None:
    got, ranked = ranks(torch.tensor([scores]), torch.tensor([target]))
    assert got.tolist() == [rank]
    assert ranked.tolist() == [sum(not math.isnan(score) for score in scores)]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=12), st.integers(0, 11))
def test_rank_matches_a_loop(scores: list[int], target: int) -> None:
    target %= len(scores)
    better = sum(score > scores[target] for score in scores)
    equal = sum(score == scores[target] for score in scores)
    got, _ = ranks(torch.tensor([scores]).float(), torch.tensor([target]))
    assert got.tolist() == [better + (equal - 1) / 2]


def test_formulas() -> None:
    metrics = event_metrics(
        rank=np.array([0.0, 9.5, 10.0, 3.0]),
        ranked=np.array([101.0, 101.0, 101.0, 1.0]),
        sampled_rank=np.array([0.0, 9.5, 10.0, 0.0]),
        missed=np.array([False, False, False, True]),
    )
    assert metrics["rank"].tolist() == [0, 0.095, 0.1, 1]
    assert metrics["hr@10"].tolist() == [1, 1, 0, 0]
    assert metrics["hr@10_sampled"].tolist() == [1, 1, 0, 0]
    assert metrics["mrr"].tolist() == [1, 1 / 10.5, 1 / 11, 0]
    assert metrics["ndcg@10"].tolist() == [1, 1 / np.log2(11.5), 0, 0]


def test_sampled_negatives_depend_on_the_event_alone_and_never_hit_the_target() -> None:
    events, others = np.arange(1000, 1200), np.full(200, 49.0)
    columns = draw_negatives(events, others, seed=3)
    assert (draw_negatives(events[7:9], others[7:9], seed=3) == columns[7:9]).all()
    assert (draw_negatives(events, others, seed=4) != columns).any()
    assert columns.min() == 0
    assert columns.max() == 48
    counts = np.bincount(columns.ravel())
    assert counts.min() > 300  # 20,000 draws over 49 columns: near uniform
    assert counts.max() < 520
    scores = torch.zeros(200, 50)
    targets = torch.arange(200) % 50
    scores[torch.arange(200), targets] = 1.0
    assert (
        sampled_ranks(scores, targets, np.full(200, 50.0), events, seed=3) == 0
    ).all()  # a hit on the target would be a tie


def test_sampled_rank_matches_a_loop() -> None:
    scores = torch.randint(0, 5, (20, 30), generator=torch.Generator().manual_seed(0)).float()
    targets, events = torch.arange(20), np.arange(20)
    got = sampled_ranks(scores, targets, np.full(20, 30.0), events, seed=0)
    for i, row in enumerate(draw_negatives(events, np.full(20, 29.0), seed=0)):
        drawn = [scores[i, c + (c >= i)] for c in row.tolist()]
        assert got[i] == sum(float(s > scores[i, i]) + float(s == scores[i, i]) / 2 for s in drawn)


def test_what_is_left_out_is_never_drawn() -> None:
    """The worst of 50 items with 45 others left out is beaten by every draw, not by one in ten."""
    scores = torch.arange(50.0).repeat(3, 1)
    scores[:, 5:] = torch.nan
    targets = torch.zeros(3, dtype=torch.long)
    assert sampled_ranks(scores, targets, np.full(3, 5.0), np.arange(3), seed=0).tolist() == [100, 100, 100]


def test_a_catalogue_of_one_is_always_a_hit() -> None:
    assert sampled_ranks(
        torch.ones(2, 1), torch.zeros(2, dtype=torch.long), np.ones(2), np.arange(2), seed=0
    ).tolist() == [0, 0]


def test_average_of_nothing_is_none() -> None:
    metrics = event_metrics(np.zeros(2), np.ones(2), np.zeros(2), np.zeros(2, dtype=bool))
    assert average(metrics, np.zeros(2, dtype=bool)) is None
    assert average(metrics, np.array([True, False]))["share"] == 0.5  # type: ignore[index]


def test_paired_interval_matches_resampling_by_hand() -> None:
    generator = np.random.default_rng(0)
    ours, theirs = generator.integers(0, 2, 400) * 1.0, generator.integers(0, 2, 400) * 1.0
    interval = paired_interval(ours, theirs, np.arange(400), resamples=4000)
    means = [np.mean((ours - theirs)[generator.integers(0, 400, 400)]) for _ in range(4000)]
    assert interval.low == pytest.approx(np.quantile(means, 0.025), abs=0.01)
    assert interval.high == pytest.approx(np.quantile(means, 0.975), abs=0.01)
    assert paired_interval(theirs * 0, theirs * 0 + 1, np.arange(400)).verdict == "worse"
    assert paired_interval(ours, ours, np.arange(400)).verdict == "not clear"


def test_events_of_one_user_are_not_independent_evidence() -> None:
    """Where users differ and the models do not, one verdict in twenty may be wrong, not one in five."""
    generator, wrong = np.random.default_rng(1), 0
    users = np.repeat(np.arange(60), generator.integers(1, 40, 60))
    for seed in range(100):
        taste = generator.normal(0, 0.5, 60)[users]
        ours = taste + generator.normal(0, 1, len(users))
        wrong += paired_interval(ours, np.zeros(len(users)), users, resamples=200, seed=seed).verdict != "not clear"
    assert wrong <= 14


def test_a_resample_is_the_mean_over_the_events_that_were_drawn() -> None:
    """One user has 91 of 100 events: whoever is drawn, a model that is better by one everywhere is better by one."""
    users = np.append(np.zeros(91, dtype=np.int64), np.arange(1, 10))
    interval = paired_interval(np.ones(100), np.zeros(100), users)
    assert (interval.low, interval.difference, interval.high) == (1.0, 1.0, 1.0)
