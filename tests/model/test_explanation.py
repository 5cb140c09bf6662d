"""What a score is made of: without a signal it is what it would be if the signal's table were empty."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import felrec
from felrec.abilities import Explaining
from felrec.model.felrec_s import FELRecS
from felrec.model.signals.signal_set import SignalName
from felrec.recommender import Queries

LOG = felrec.synthetic_log(3_000, n_users=40, n_items=60, seed=2).log
ITEMS = np.arange(LOG.n_items, dtype=np.int32)
NOW = float(LOG.times[-1])


@pytest.fixture
def model() -> FELRecS:
    recommender = felrec.load_pretrained().recommender
    assert isinstance(recommender, FELRecS)
    for block in LOG.events.blocks(256):
        recommender.observe(block)
    return recommender


@pytest.mark.parametrize("name", ["together", "follows"])
def test_a_silent_signal_is_one_with_an_empty_table(model: FELRecS, name: SignalName) -> None:
    queries = Queries.now(np.arange(20), NOW)
    silent = model.score_without(name, queries, ITEMS)
    signal = model.signals.pair_signal(name)
    assert signal is not None
    assert not torch.allclose(silent, model.score(queries, ITEMS))
    signal.clear()
    torch.testing.assert_close(silent, model.score(queries, ITEMS))


def test_taking_a_part_away_lowers_the_score(model: FELRecS) -> None:
    assert isinstance(model, Explaining)
    for user in range(10):
        queries = Queries.now(np.array([user]), NOW)
        whole = model.score(queries, ITEMS)[0]
        explained = model.explain(user, NOW, ITEMS)
        assert len(explained) == len(ITEMS)
        for at, parts in enumerate(explained):
            assert [part.gain for part in parts] == sorted((part.gain for part in parts), reverse=True)
            for part in parts:
                without = model.score_without(part.signal, queries, ITEMS)[0]  # type: ignore[arg-type]
                assert without[at] < whole[at]
                assert float(whole[at] - without[at]) == pytest.approx(part.gain, abs=1e-5)


def test_leads_are_recent_items_of_the_user_that_are_linked_to_the_item(model: FELRecS) -> None:
    together = model.signals.together
    assert together is not None
    found = 0
    for user in range(10):
        recent = LOG.items[LOG.users == user][-together.reach :].tolist()
        for item in ITEMS[:30].tolist():
            leads = together.leading_to(user, item)
            found += len(leads)
            for own, count in leads:
                assert own in recent
                row = together.counts.of(np.array([own], dtype=np.int32))
                assert float(row["count"][row["other"] == item][0]) == count
            linked = {own for own in recent if (together.counts.of(np.array([own]))["other"] == item).any()}
            assert {own for own, _ in leads} == linked
    assert found


def test_an_item_without_events_has_no_parts(model: FELRecS) -> None:
    assert model.explain(0, NOW, np.array([LOG.n_items + 5], dtype=np.int32)) == [[]]


def test_a_model_without_a_signal_never_names_it() -> None:
    fitted = felrec.fit(felrec.split_log(LOG), epochs=1, width=8, heads=2, feed_forward=8, signals="trend,together")
    recommender = fitted.recommender
    assert isinstance(recommender, FELRecS)
    parts = [part for of_item in recommender.explain(0, NOW, ITEMS[:20]) for part in of_item]
    assert {part.signal for part in parts} <= {"trend", "together"}
