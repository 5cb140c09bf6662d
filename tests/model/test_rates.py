"""Rates: the same evidence, worth what it turned out to be worth on this log."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from felrec.data.events import Events
from felrec.evaluation.protocols import replay
from felrec.model.evidence import Catalogue, gather
from felrec.model.felrec_s import FELRecS, FELRecSSettings
from felrec.model.rates import CELLS, EVERY, Rates, cells
from felrec.recommender import Queries

SETTINGS = FELRecSSettings(width=8, heads=2, feed_forward=16, history_length=8, own_items=16, rates=True)
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
    everything = Catalogue.of(np.arange(200, dtype=np.int32), made.counts.items)
    found = gather(Queries.before_each(events[-10:]), made.counts, everything).cells()
    assert made.counts.rates
    return made.counts.rates.features(found[found[:, OWN] >= 0])


def test_own_items_are_worth_more_where_people_repeat() -> None:
    again, once = told(people(repeat=True)), told(people(repeat=False))
    assert again[:, OWN].min() > 3.3  # one of two, and some had only one yet: more than a fifth
    assert once[:, OWN].max() < 1  # hardly ever
    assert (told(people(repeat=False))[:, NEAR] != 0).any()


def test_pairs_fall_into_cells_by_what_they_are() -> None:
    count, back = np.array([0, 1, 2, 9, 100], np.float32), np.array([0, 1, 2, 4, 1e6], np.float32)
    none, strong = np.zeros(5, np.float32), np.array([0, 0, 0.1, 9, 99], np.float32)
    found = cells(count, back, none, near=none, after=strong)
    assert (found[:, NEAR] == -1).all()
    assert found[0].tolist() == [-1, -1, -1]
    assert len(set(found[1:, OWN])) == 4
    assert found[2:, 2].max() == CELLS - 1
    sitting = cells(count, back, none + 1, near=none, after=strong)
    assert (sitting[1:, OWN] != found[1:, OWN]).all()


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
    rates, many = Rates(), np.full((500, 3), -1)
    many[:, OWN] = 5
    rates.apply_change(rates.change(many, np.arange(500) % 2 == 0, events=250))
    elsewhere = np.array([[6, -1, -1], [-1, -1, -1], [-1, 90, -1]])
    features = rates.features(elsewhere)
    assert features[0, OWN] > 3.4  # about a half, as in the cell beside it
    assert (features[1] == 0).all()
    assert 0 < features[2, NEAR] < features[0, OWN]


def test_rates_fade() -> None:
    rates, pairs = Rates(), np.array([[3, -1, -1]])
    rates.apply_change(rates.change(pairs, np.array([True]), events=1))
    rates.apply_change(rates.change(pairs[:0], np.zeros(0, dtype=bool), events=10_000))
    assert rates.state()["cells"][:, 3].tolist() == pytest.approx([0.5, 0.5], rel=1e-3)
