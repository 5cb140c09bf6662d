"""The compiled kernels score items as the item network does in torch, and keep scores up to date one by one."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import needs
from felrec.data.events import Events
from felrec.data.synthetic import synthetic_log
from felrec.evaluation.protocols import replay
from felrec.model.felrec_s import FELRecS, felrec_s
from felrec.model.felrec_s_settings import FELRecSSettings
from felrec.model.item_scores import ItemScores
from felrec.model.signals.signal_set import SIGNALS, SignalName
from felrec.pretrained import load_pretrained
from random_models import ITEMS, logs, models, randomised

needs.kernels()

EVERY = np.arange(ITEMS + 4, dtype=np.int32)
LOG = synthetic_log(6_000, n_users=200, n_items=3_000, seed=5).log.events


@settings(max_examples=100, deadline=None)
@given(models(), logs(), st.permutations(EVERY.tolist()))
def test_scores_are_those_of_the_network(made: FELRecS, log: Events, order: list[int]) -> None:
    replay(made, log, block=20)
    rows = np.array(order, dtype=np.int32)[: len(order) // 2 + 1]
    with torch.no_grad():
        expected = ItemScores.computed(rows, made.signals, made._item_network)
    torch.testing.assert_close(made.item_scores(rows).scores, expected.scores, rtol=1e-5, atol=1e-5)


def test_a_score_is_the_same_alone_and_among_others() -> None:
    made = load_pretrained().recommender
    assert isinstance(made, FELRecS)
    replay(made, LOG)
    rows = np.arange(3_000, dtype=np.int32)
    together = made.item_scores(rows).scores
    alone = torch.cat([made.item_scores(rows[row : row + 1]).scores for row in range(0, 3_000, 37)])
    assert torch.equal(together[::37], alone)


@pytest.mark.parametrize("signals", [list(SIGNALS), [signal for signal in SIGNALS if signal != "vectors"]])
def test_what_is_renewed_equals_what_is_made_anew(signals: list[SignalName]) -> None:
    made = felrec_s(FELRecSSettings(signals=signals, width=16))
    randomised(made, 1)
    replay(made, LOG[:5_030])
    every = np.arange(3_000, dtype=np.int32)
    kept = made.item_scores(every)
    moment = made.signals.trend and made.signals.trend.counts.moment
    for event in range(5_030, 5_080):
        change = made.change(LOG[event : event + 1])
        made.apply_change(change)
        if not made.renew_item_scores(kept, change):
            kept = made.item_scores(every)
        anew = made.item_scores(every)
        assert torch.equal(kept.scores, anew.scores)
        assert torch.equal(kept.log_events, anew.log_events)
    assert made.signals.trend
    assert made.signals.trend.counts.moment != moment
