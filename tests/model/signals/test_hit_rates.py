"""Hit rates: the same evidence is worth what it turned out to be worth on this log."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from felrec.data.events import Events
from felrec.evaluation.protocols import replay
from felrec.model.felrec_s import FELRecS
from felrec.model.felrec_s_settings import FELRecSSettings
from felrec.model.signals.hit_rates import EVERY, HitRates
from felrec.model.signals.pairs import Candidates
from felrec.model.signals.signal_set import SIGNALS
from felrec.recommender import Queries

SETTINGS = FELRecSSettings(width=8, heads=2, feed_forward=16, history_length=8, own_items=16, signals=list(SIGNALS))
OWN, NEAR = 0, 1


def people(repeat: bool) -> Events:
    """40 people who take one of their two things again and again, or never the same of 200."""
    rng = np.random.default_rng(1)
    users = rng.integers(0, 40, 1_600)
    nth = np.array([(users[:n] == user).sum() for n, user in enumerate(users)])
    items = users * 2 + rng.integers(0, 2, 1_600) if repeat else (users * 7 + nth) % 200
    return Events.of(users, items, np.arange(1_600) * 60)


def told(events: Events) -> NDArray[np.float32]:
    """What the rates say of the evidence for the last ten events, where it is of a user's own items."""
    made = FELRecS(SETTINGS)
    replay(made, events[:-10])
    everything = Candidates.of(np.arange(200, dtype=np.int32), made.signals.recent)
    found = made.pair_features(Queries.before_each(events[-10:]), everything)
    names = ("hit_rates.repetition", "hit_rates.together", "hit_rates.follows")
    return np.stack([found[name] for name in names], axis=1)[found["repetition.is_own"] > 0]


def empty_rates() -> HitRates:
    rates = FELRecS(SETTINGS).signals.hit_rates
    assert rates
    return rates


def test_own_items_are_worth_more_where_people_repeat() -> None:
    again, once = told(people(repeat=True)), told(people(repeat=False))
    assert again[:, OWN].min() > 3.3  # one of two, and some had only one yet: more than a fifth
    assert once[:, OWN].max() < 1  # hardly ever
    assert (told(people(repeat=False))[:, NEAR] != 0).any()


def test_pairs_fall_into_buckets_by_what_they_are() -> None:
    """By how often, how long ago, in which sitting; by how strong a link is, and whether it leads to an own item."""
    made = FELRecS(SETTINGS)
    signals = made.signals
    made.observe(Events.of([0, 0, 0, 0, 1, 1, 1], [1, 2, 2, 3, 3, 4, 5], [0, 60, 120, 9_000, 0, 60, 120]))
    found = made.pair_features(
        Queries.now(np.array([0]), 9_060.0), Candidates.of(np.arange(6, dtype=np.int32), signals.recent)
    )
    assert found.buckets is not None
    by_item = dict(zip(found.pairs.column.tolist(), found.buckets.tolist(), strict=True))
    assert 0 not in by_item  # nothing speaks for it
    own = [by_item[item][OWN] for item in (1, 2, 3)]
    assert min(own) >= 0
    assert len(set(own)) == 3
    assert [bucket % 2 for bucket in own] == [0, 0, 1]  # only the last was taken in the last sitting
    assert [by_item[item][OWN] for item in (4, 5)] == [-1, -1]
    assert by_item[1][NEAR] % 2 == 1  # an own item
    assert by_item[4][NEAR] % 2 == 0
    assert 0 <= by_item[4][NEAR] < 24


def test_one_event_in_four_is_looked_at_however_they_come() -> None:
    events = people(repeat=True)[:101]
    made = FELRecS(SETTINGS)
    for n in range(len(events)):
        made.observe(events[n : n + 1])
    taken, pairs = made.state()["rate_cells"].numpy()
    looked_at = range(0, len(events), EVERY)
    repeats = [
        n for n in looked_at if ((events.users == events.users[n]) & (events.items == events.items[n]))[:n].any()
    ]
    of_own = slice(0, 80)
    assert abs(taken[of_own].sum() - len(repeats)) < 0.01 * len(events)
    assert pairs[of_own].sum() > taken[of_own].sum()


def test_what_is_known_of_a_kind_stands_in_for_a_cell_that_is_new() -> None:
    rates, many = empty_rates(), np.full((500, 3), -1)
    many[:, OWN] = 5
    rates.apply_change(rates.counted(many, np.arange(500) % 2 == 0, events=250))
    elsewhere = np.array([[6, -1, -1], [-1, -1, -1], [-1, 10, -1]])
    features = rates.features(elsewhere)
    assert features[0, OWN] > 3.4  # about a half, as in the cell beside it
    assert (features[1] == 0).all()
    assert 0 < features[2, NEAR] < features[0, OWN]


def test_rates_fade() -> None:
    rates, pairs = empty_rates(), np.array([[3, -1, -1]])
    rates.apply_change(rates.counted(pairs, np.array([True]), events=1))
    rates.apply_change(rates.counted(pairs[:0], np.zeros(0, dtype=bool), events=10_000))
    assert rates.state()["rate_cells"][:, 3].tolist() == pytest.approx([0.5, 0.5], rel=1e-3)
