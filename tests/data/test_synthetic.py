from __future__ import annotations

import numpy as np
import pytest

from felrec.data.split import repeats
from felrec.data.synthetic import SyntheticLog, synthetic_log
from felrec.errors import ConfigError


@pytest.fixture(scope="module")
def made() -> SyntheticLog:
    return synthetic_log(60_000, n_users=2_000, n_items=3_000, seed=5)


def test_the_same_seed_gives_the_same_log() -> None:
    first, again, other = (synthetic_log(4_000, seed=seed) for seed in (1, 1, 2))
    assert first.log.fingerprint == again.log.fingerprint != other.log.fingerprint
    assert first.item_taste.tolist() == again.item_taste.tolist()


def test_answers_are_aligned_with_the_rows(made: SyntheticLog) -> None:
    assert len(made.user_taste) == made.log.n_users
    assert len(made.item_taste) == len(made.item_birth) == len(made.item_death) == made.log.n_items
    assert list(dict.fromkeys(made.log.items.tolist())) == list(range(made.log.n_items))
    assert np.all(np.diff(made.log.times) >= 0)


def test_no_event_outside_of_an_items_life(made: SyntheticLog) -> None:
    assert np.all(made.log.times >= made.item_birth[made.log.items])
    assert np.all(made.log.times <= made.item_death[made.log.items])
    assert np.isfinite(made.item_death).any()
    assert (made.item_birth > made.log.times[0]).any()


@pytest.mark.parametrize("strength", [0.0, 0.5, 1.0])
def test_tastes_show(strength: float) -> None:
    made = synthetic_log(20_000, tastes=8, taste_strength=strength, birth_share=0, lifetime=100, drift=0, seed=1)
    own = np.mean(made.user_taste[made.log.users] == made.item_taste[made.log.items])
    # By chance a user meets their taste anyway, one time in eight or so.
    assert own == pytest.approx(strength + (1 - strength) / 8, abs=0.06)


def share_of_repeats(repeat_share: float) -> float:
    made = synthetic_log(
        50_000, n_users=5_000, n_items=50_000, tastes=1, lifetime=1e6, drift=0, repeat_share=repeat_share, seed=2
    )
    return float(repeats(made.log).mean())


def test_repeats_have_their_share() -> None:
    by_chance = share_of_repeats(0.0)
    assert by_chance < 0.25
    for share in (0.2, 0.5):
        # A user's first event repeats nothing; chance repeats come on top, of fewer fresh draws.
        assert 0.85 * share < share_of_repeats(share) < share + (1 - share) * by_chance


def test_drift_changes_what_is_popular() -> None:
    def overlap(drift: float) -> int:
        made = synthetic_log(60_000, birth_share=0, lifetime=1e6, drift=drift, repeat_share=0, seed=3)
        tops = [np.argsort(-np.bincount(part, minlength=made.log.n_items))[:50] for part in np.split(made.log.items, 4)]
        return len(np.intersect1d(tops[0], tops[2]))

    assert overlap(2.0) < overlap(0.0) - 15


def test_new_users_and_items_keep_coming(made: SyntheticLog) -> None:
    half = len(made.log) // 2
    assert made.log.users[half:].max() > made.log.users[:half].max()
    assert made.log.items[half:].max() > made.log.items[:half].max()


def test_activity_and_popularity_are_skewed(made: SyntheticLog) -> None:
    for rows in (made.log.users, made.log.items):
        counts = np.sort(np.bincount(rows))[::-1]
        assert counts[: len(counts) // 10].sum() > 0.3 * counts.sum()


@pytest.mark.parametrize("n_events", [1, 2, 255, 257])
def test_any_size_works(n_events: int) -> None:
    assert len(synthetic_log(n_events, n_users=2, n_items=8).log) == n_events


def test_nonsense_is_refused() -> None:
    with pytest.raises(ConfigError, match="two users"):
        synthetic_log(10, n_users=1)
    with pytest.raises(ConfigError, match="one item for each taste"):
        synthetic_log(10, n_items=3, tastes=4)


@pytest.mark.slow
def test_a_million_events() -> None:
    assert len(synthetic_log(1_000_000, n_users=50_000, n_items=20_000).log) == 1_000_000


def test_baskets_are_of_one_user_and_one_time_and_repeat_earlier_ones() -> None:
    made = synthetic_log(20_000, n_users=300, n_items=5_000, basket=6.0, repeat_share=0.5, birth_share=0.0, seed=2).log
    change = np.flatnonzero(np.diff(made.times)) + 1
    assert len(made) / (len(change) + 1) == pytest.approx(6.0, rel=0.1)
    same = np.diff(made.times) == 0
    assert (np.diff(made.users)[same] == 0).mean() > 0.97  # a basket may be cut where popularity changes
    without = synthetic_log(
        20_000, n_users=300, n_items=5_000, basket=6.0, repeat_share=0.0, birth_share=0.0, seed=2
    ).log
    assert repeats(made, len(made)).mean() > repeats(without, len(without)).mean() + 0.1
