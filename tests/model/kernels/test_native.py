"""The compiled kernels find what ranking the scores of all items finds."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import needs
from felrec.abilities import Found, Selection
from felrec.data.events import Events, Rows
from felrec.data.pending import Pending
from felrec.data.synthetic import synthetic_log
from felrec.evaluation.protocols import replay
from felrec.item_score_cache import ItemScoreCache
from felrec.model import felrec_s as felrec_s_module
from felrec.model.felrec_s import FELRecS, felrec_s
from felrec.model.felrec_s_settings import FELRecSSettings
from felrec.pretrained import load_pretrained
from felrec.recommender import Queries
from random_models import ITEMS, USERS, logs, models, randomised

needs.kernels()

NOTHING = np.zeros(0, dtype=np.int32)
LOG = synthetic_log(6_000, n_users=200, n_items=3_000, seed=5).log.events
rows = st.lists(st.integers(0, ITEMS + 3), max_size=40)


def ascending(numbers: list[int]) -> Rows:
    return np.unique(np.array(numbers, dtype=np.int32))


@st.composite
def questions(draw: st.DrawFn) -> tuple[Queries, list[Selection], Rows]:
    count = draw(st.integers(1, 4))
    users = draw(st.lists(st.integers(0, USERS + 2), min_size=count, max_size=count))
    pending = Pending.of(
        draw(st.lists(st.lists(st.integers(0, ITEMS + 3), max_size=8), min_size=count, max_size=count))
    )
    times = np.full(len(pending.values), 29_000.0) if draw(st.booleans()) else None
    asked = Queries(np.array(users, dtype=np.int32), np.full(count, 31_000.0), pending, times)
    selections = [
        Selection(
            draw(st.sampled_from([1, 3, 10, 100])),
            ascending(draw(rows)),
            ascending(draw(rows)) if draw(st.booleans()) else None,
        )
        for _ in range(count)
    ]
    return asked, selections, ascending(draw(st.one_of(st.just([]), rows)))


def check(found: list[Found], scores: torch.Tensor, selections: list[Selection], hidden: Rows) -> None:
    """Against the scores (B, C) of all items."""
    for one, of_query, selection in zip(found, scores.numpy(), selections, strict=True):
        allowed = of_query.copy()
        allowed[np.isin(np.arange(len(allowed)), np.concatenate([selection.leave_out, hidden]))] = -np.inf
        if selection.candidates is not None:
            allowed[~np.isin(np.arange(len(allowed)), selection.candidates)] = -np.inf
        expected = np.sort(allowed[allowed > -np.inf])[::-1][: selection.k]
        near = 1e-5 * (1 + np.abs(expected).max(initial=0))
        np.testing.assert_allclose(one.scores, expected, rtol=0, atol=near)
        np.testing.assert_allclose(allowed[one.rows], expected, rtol=0, atol=near)  # the same order, up to near scores
        assert len(set(one.rows.tolist())) == len(one.rows)
        assert (np.diff(one.scores) <= 0).all()


@settings(max_examples=150, deadline=None)
@given(models(), logs(), questions())
def test_they_find_what_ranking_all_items_finds(
    made: FELRecS, log: Events, question: tuple[Queries, list[Selection], Rows]
) -> None:
    replay(made, log, block=20)
    asked, selections, hidden = question
    every = np.arange(ITEMS + 4, dtype=np.int32)
    scores = made.item_scores(every)
    check(made.ranking().best(asked, selections, hidden), made.score_with(asked, scores), selections, hidden)


@st.composite
def later_events(draw: st.DrawFn) -> Events:
    """Of a few items only: the others keep their bounds for many moments."""
    count, random = draw(st.sampled_from([1, 5, 64, 300, 1_000])), np.random.default_rng(draw(st.integers(0, 99)))
    items = random.choice(random.integers(ITEMS, size=3), size=count)
    users, times = random.integers(draw(st.sampled_from([1, USERS])), size=count), np.full(count, 30_000.0)
    weights = draw(st.sampled_from([None, [np.nan, 0, 3, -1]]))
    return Events.of(users, items, times, None if weights is None else random.choice(weights, count))


def check_later(made: FELRecS, log: Events, later: list[Events], k: int) -> None:
    """Items are far apart, so that each chunk has one or two and is skipped if their bounds allow it."""
    far, every = 200, np.arange(ITEMS * 200, dtype=np.int32)
    replay(made, replace(log, items=log.items * far), block=20)
    cache, selections = ItemScoreCache(made), [Selection(k, NOTHING)] * 3
    asked = Queries.now(np.array([0, 1, USERS + 1]), 31_000.0)
    cache.best(asked, selections, len(every))
    for events in later:
        for begin in range(0, len(events), 97):
            block = events[begin : begin + 97]
            cache.apply_change(made.change(replace(block, items=block.items * far)))
        check(cache.best(asked, selections, len(every)), made.score(asked, every), selections, NOTHING)


@settings(max_examples=100, deadline=None)
@given(models(), logs(), st.lists(later_events(), min_size=1, max_size=4), st.sampled_from([1, 3, 10]))
def test_bounds_hold_at_later_moments_too(made: FELRecS, log: Events, later: list[Events], k: int) -> None:
    check_later(made, log, later, k)


@pytest.mark.parametrize("seed", range(20))
def test_bounds_hold_when_the_log_changes(seed: int) -> None:
    """Item scores depend on nothing but the features of the log, which then change much."""
    made = felrec_s(FELRecSSettings(signals=["trend", "profile"], members=2, history_length=5))
    randomised(made, seed)
    assert made.item_network
    of_trend = len(made.signals.item_names) - len(made.signals.log_names)
    with torch.no_grad():
        made.item_slopes.zero_()
        for first, _, last in (network.children() for network in made.item_network.networks):
            assert isinstance(first, torch.nn.Linear)
            assert isinstance(last, torch.nn.Linear)
            first.weight[:, :of_trend] *= 0.1
            first.weight[:, of_trend:] *= 5
    random, times = np.random.default_rng(seed), np.zeros(300)
    log = Events.of(random.integers(USERS, size=300), random.integers(ITEMS, size=300), times)
    one = Events.of(np.zeros(300, dtype=int), np.full(300, 3), times + 30_000)
    many = Events.of(1_000 + np.arange(300), random.integers(ITEMS, size=300), times + 30_000)
    check_later(made, log, [one, many, one, many], 3)


@pytest.mark.parametrize("weights", ["bundled", "random", "new"])
def test_kept_scores_follow_events_new_items_and_moments(weights: str) -> None:
    bundled = load_pretrained().recommender
    assert isinstance(bundled, FELRecS)
    chosen = bundled.settings if weights == "bundled" else FELRecSSettings(width=16)
    made = felrec_s(chosen.model_copy(update={"near_items": 128}))  # longer lists link half of this small catalogue
    if weights == "bundled":
        made.load_weights(bundled.weights())
    if weights == "random":
        randomised(made, 1)
    replay(made, LOG[:4_900])
    cache, random, scored = ItemScoreCache(made), np.random.default_rng(0), list[int]()
    for nth in range(4_900, 5_100):
        cache.apply_change(made.change(LOG[nth : nth + 1]))
        items = int(LOG.items[: nth + 1].max()) + 1
        asked = Queries.now(random.integers(210, size=3), float(LOG.times[nth]))
        selections = [Selection(10, ascending(random.integers(items, size=99).tolist())), Selection(3, NOTHING)]
        selections += [Selection(5, NOTHING, ascending(random.integers(items, size=300).tolist()))]
        found = cache.best(asked, selections, items)
        check(found, made.score(asked, np.arange(items, dtype=np.int32)), selections, NOTHING)
        scored += [one.scored for one in found[:2]]
    assert np.median(scored) < len(np.unique(LOG.items[:5_000])) / (1 if weights == "random" else 4)


def test_equal_scores_are_in_the_order_of_rows() -> None:
    made = felrec_s(FELRecSSettings(signals=["repetition"]))  # for a user without items, all are equal
    items = [4, 0, 7, 2, 1, 600, 3, 5, 6]
    made.observe(Events.of(np.arange(9), items, np.zeros(9)))
    (found,) = ItemScoreCache(made).best(Queries.now(np.array([50]), 0.0), [Selection(5, np.array([2], np.int32))], 601)
    assert found.rows.tolist() == [0, 1, 3, 4, 5]
    assert found.scored == len(items)


def test_threads_and_batches_give_the_same_bits() -> None:
    made = load_pretrained().recommender
    replay(made, LOG)
    cache, users = ItemScoreCache(made), np.arange(200)

    def ask(some: np.typing.NDArray[np.int64]) -> list[Any]:
        found = cache.best(Queries.now(some, 2e9), [Selection(10, NOTHING)] * len(some), 3_000)
        return [(one.rows.tolist(), one.scores.tolist(), one.scored) for one in found]

    alone = [answer for user in users for answer in ask(np.array([user]))]
    with ThreadPoolExecutor(4) as threads:
        together = [answer for part in threads.map(ask, np.array_split(users, 40)) for answer in part]
    assert together == alone


def test_without_compiled_kernels_all_items_are_ranked(monkeypatch: pytest.MonkeyPatch) -> None:
    made = load_pretrained().recommender
    replay(made, LOG)
    asked = Queries.now(np.arange(5), 2e9)
    selections = [Selection(10, np.arange(0, 3_000, 2, dtype=np.int32))] * 4
    selections.append(Selection(10, NOTHING, np.arange(1_000, dtype=np.int32)))
    hidden = np.arange(0, 3_000, 7, dtype=np.int32)
    cache = ItemScoreCache(made)
    pruned = cache.best(asked, selections, 3_000, hidden)
    monkeypatch.setattr(felrec_s_module, "library", lambda: None)
    assert not cache.prunes
    ranked = cache.best(asked, selections, 3_000, hidden)
    assert [one.scored for one in ranked] == [3_000] * 4 + [1_000]
    for one, other in zip(pruned, ranked, strict=True):
        assert one.rows.tolist() == other.rows.tolist()
        np.testing.assert_allclose(one.scores, other.scores, atol=1e-5)
