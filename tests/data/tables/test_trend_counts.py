"""Trend counts against counting, and what "now" means for them."""

from __future__ import annotations

import numpy as np
import pytest

from felrec.data.events import Against, Rows
from felrec.data.synthetic import synthetic_log
from felrec.data.tables.trend_counts import TREND_HALF_LIVES, TrendCounts

ITEMS = synthetic_log(1_500, n_users=60, n_items=50, seed=3).log.events.items
ASKED = np.array([0, 3, 49, 7_000], dtype=np.int32)


def counted(items: Rows, size: int) -> TrendCounts:
    counts = TrendCounts()
    for start in range(0, len(items), size):
        counts.apply_change(counts.change(items[start : start + size]))
    return counts


@pytest.mark.parametrize("size", [1, 7, 37, 64, 100, 256, 1_500])
def test_counts_have_one_meaning_for_every_item_at_every_block_size(size: int) -> None:
    """As of the last multiple of 64 events: events up to it have decayed, later ones count in full."""
    counts = counted(ITEMS, size)
    assert (counts.events, counts.moment) == (1_500, 1_472)
    age = np.maximum(counts.moment - np.arange(1, len(ITEMS) + 1), 0)
    left = np.exp2(-age[:, None] / TREND_HALF_LIVES)
    expected = np.stack([left[item == ITEMS].sum(axis=0) for item in ASKED])
    np.testing.assert_allclose(counts.decayed(ASKED), expected, rtol=1e-3)
    firsts = [int(np.flatnonzero(item == ITEMS)[0]) if (item == ITEMS).any() else None for item in ASKED]
    ages = [0 if first is None else max(counts.moment - first, 1) for first in firsts]
    assert counts.ages(ASKED).tolist() == ages


def test_between_two_moments_an_event_changes_its_own_item_alone() -> None:
    counts = counted(np.arange(8_192, dtype=np.int32) % 256, 256)
    before = counts.decayed(np.array([3, 5]))
    for event in range(63):
        counts.apply_change(counts.change(np.array([3], dtype=np.int32)))
        assert (counts.events, counts.moment) == (8_193 + event, 8_192)
        touched, untouched = counts.decayed(np.array([3, 5]))
        np.testing.assert_allclose(touched, before[0] + event + 1, rtol=1e-5)  # each counts in full
        assert (untouched == before[1]).all()
    counts.apply_change(counts.change(np.array([3], dtype=np.int32)))
    assert counts.moment == counts.events
    assert (counts.decayed(np.array([5]))[0] < before[1]).all()


@pytest.mark.parametrize("size", [1, 100])
def test_state_comes_back(size: int) -> None:
    counts, again = counted(ITEMS, size), TrendCounts()
    again.load_state(counts.state())
    assert (again.events, again.moment, again.items) == (counts.events, counts.moment, counts.items)
    assert (again.decayed(ASKED) == counts.decayed(ASKED)).all()


def test_an_item_that_was_forgotten_is_new_when_it_comes_again() -> None:
    counts = counted(np.array([0, 1, 1, 0] * 32, dtype=np.int32), 128)
    counts.apply_change(counts.forget(np.array([1], dtype=np.int32), np.array([64]), np.array([0])))
    assert counts.ages(np.array([0, 1], dtype=np.int32)).tolist() == [128, 0]
    counts.apply_change(counts.change(np.array([1], dtype=np.int32)))
    assert counts.ages(np.array([1], dtype=np.int32)).tolist() == [1]


def test_shares_of_a_young_log_are_of_what_there_is() -> None:
    counts = TrendCounts()
    counts.apply_change(counts.change(np.array([0, 0, 0, 1], dtype=np.int32)))
    shares = counts.shares(counts.decayed(np.arange(2, dtype=np.int32)))
    np.testing.assert_allclose(shares.sum(axis=0), 1, atol=0.05)
    np.testing.assert_allclose(shares[0], 0.75, atol=0.05)


@pytest.mark.parametrize("size", [1, 256])
def test_counts_without_some_events_shrink_in_proportion(size: int) -> None:
    counts = counted(ITEMS[:600], size)
    before, items = counts.decayed(ASKED), np.array([0, 3], dtype=np.int32)
    counts.apply_change(counts.forget(items, np.array([1, 2]), np.array([3, 2])))
    after = counts.decayed(ASKED)
    np.testing.assert_allclose(after[:2], before[:2] * [[0.75], [0.5]], rtol=1e-5)
    assert (after[2:] == before[2:]).all()
    counts.apply_change(counts.change(ITEMS[600:900]))
    assert counts.events == 900


@pytest.mark.parametrize("size", [1, 7, 64, 100, 1_500])
def test_events_add_what_they_are_worth_and_pass_time(size: int) -> None:
    counts, worth = TrendCounts(), np.random.default_rng(0).choice([0, 1, 0.3, 5], len(ITEMS)).astype(np.float32)
    for start in range(0, len(ITEMS), size):
        part = slice(start, start + size)
        counts.apply_change(counts.change(ITEMS[part], worth[part]))
    assert (counts.events, counts.moment) == (1_500, 1_472)
    left = np.exp2(-np.maximum(counts.moment - np.arange(1, len(ITEMS) + 1), 0)[:, None] / TREND_HALF_LIVES)
    expected = np.stack([(left * worth[:, None])[item == ITEMS].sum(axis=0) for item in ASKED])
    np.testing.assert_allclose(counts.decayed(ASKED), expected, rtol=1e-3)


def test_what_speaks_against_an_item_lowers_its_counts_down_to_none() -> None:
    counts = TrendCounts()
    counts.apply_change(counts.change(ITEMS[:640]))
    before, events = counts.decayed(ASKED), counts.events
    against = Against(np.array([ASKED[0], 9_999], dtype=np.int32), np.array([0.5, 1], dtype=np.float32))
    counts.apply_change(counts.change(ITEMS[:0], against=against))
    np.testing.assert_allclose(counts.decayed(ASKED)[0], np.maximum(before[0] - 0.5, 0), rtol=1e-4, atol=1e-6)
    assert (counts.decayed(ASKED)[1:] == before[1:]).all()
    assert (counts.events, counts.items) == (events, len(np.unique(ITEMS[:640])))  # it is no event, and no new item
    counts.apply_change(
        counts.change(ITEMS[:0], against=against._replace(weights=np.array([1e6, 1], dtype=np.float32)))
    )
    assert (counts.decayed(ASKED)[0] == 0).all()
