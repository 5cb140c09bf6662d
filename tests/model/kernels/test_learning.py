"""The compiled loss has the value and the gradients of the code in torch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings

import needs
from felrec.data.batches import TimeBatch
from felrec.data.events import Events
from felrec.data.synthetic import synthetic_log
from felrec.evaluation.protocols import replay
from felrec.model import compiled_loss
from felrec.model import felrec_s as felrec_s_module
from felrec.model.compiled_loss import CompiledLoss
from felrec.model.felrec_s import FELRecS, felrec_s
from felrec.model.felrec_s_settings import FELRecSSettings
from felrec.model.signals.signal_set import SIGNALS
from felrec.recommender import Queries, Tensors
from random_models import logs, models, randomised

needs.kernels()

LOG = synthetic_log(3_000, n_users=100, n_items=800, seed=5).log.events


def renumbered(events: Events) -> Events:
    """Rows by first appearance, as in a log: the kernels learn only where every row has events."""
    events = events.shown()
    _, first, rows = np.unique(events.items, return_index=True, return_inverse=True)
    order = np.empty(len(first), dtype=np.int64)
    order[np.argsort(first)] = np.arange(len(first))
    return Events.of(events.users, order[rows], events.times, events.weights)


def gradients(made: FELRecS, state: Tensors, batch: Events) -> tuple[float, dict[str, torch.Tensor]]:
    made.load_state(state)
    made.zero_grad()
    loss = made.loss(TimeBatch(batch))
    loss.backward()  # type: ignore[no-untyped-call]
    return loss.item(), {name: p.grad.clone() for name, p in made.named_parameters() if p.grad is not None}


def check(made: FELRecS, seen: Events, batch: Events, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the same state: random weights would make much of the last bits of another one."""
    made.reset()
    replay(made, seen, block=20)
    state, recent_users = made.state(), made.memory()
    with monkeypatch.context() as patch:
        patch.setattr(compiled_loss, "LEAST_SHARE", 0.0)  # all gradients, none sampled
        value, compiled = gradients(made, state, batch)
    made.load_memory(recent_users)
    with monkeypatch.context() as patch:
        patch.setattr(felrec_s_module, "library", lambda: None)
        loss, reference = gradients(made, state, batch)
    assert value == pytest.approx(loss, rel=1e-4, abs=1e-4)
    assert compiled.keys() == reference.keys()
    for name, gradient in reference.items():
        near = 1e-4 * max(1.0, float(gradient.norm(torch.inf)) if gradient.numel() else 0.0)
        torch.testing.assert_close(compiled[name], gradient, rtol=0, atol=near)


@settings(max_examples=100, deadline=None)
@given(models(), logs())
def test_random_models_have_the_same_gradients(made: FELRecS, log: Events) -> None:
    events = renumbered(log)
    split = len(events) * 2 // 3
    assume(split < len(events))
    with pytest.MonkeyPatch.context() as monkeypatch:
        check(made, events[:split], events[split:], monkeypatch)


@pytest.mark.parametrize("members", [1, 3])
def test_larger_batches_have_the_same_gradients(members: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made = randomised(felrec_s(FELRecSSettings(signals=list(SIGNALS), members=members)), 3)
    check(made, LOG[:2_500], LOG[2_500:2_700], monkeypatch)


def test_a_lift_of_new_items_has_the_same_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    made = randomised(felrec_s(FELRecSSettings(new_item_lift=500.0)), 3)  # large, as the catalogue is small
    check(made, LOG[:2_500], LOG[2_500:2_700], monkeypatch)
    lifts = made._lifts(np.arange(made.signals.recent.items.owners, dtype=np.int32))
    assert lifts is not None
    assert lifts.max() > 0.1


def test_sampled_gradients_are_unbiased(monkeypatch: pytest.MonkeyPatch) -> None:
    made = randomised(felrec_s(FELRecSSettings(members=2)), 3)
    replay(made, LOG[:2_500])
    state, found = made.state(), {}
    for least in (0.0, 0.2):  # sampled nearly everywhere
        monkeypatch.setattr(compiled_loss, "LEAST_SHARE", least)
        means = []
        for trial in range(150):  # other pairs are sampled with weights that hardly differ
            with torch.no_grad():
                made.item_slopes.fill_(0.3 + trial * 1e-5)
            means.append(gradients(made, state, LOG[2_500:2_564])[1]["pair_network.networks.0.0.weight"])
        found[least] = torch.stack(means)
    exact, sampled = found[0.0].mean(dim=0), found[0.2].mean(dim=0)
    noise = found[0.2].std(dim=0) / 150**0.5
    assert (found[0.2][0] - found[0.0][0]).abs().max() > 1e-3  # otherwise nothing was sampled
    assert ((sampled - exact).abs() < 5 * noise + 1e-4).all()


def test_gradients_do_not_depend_on_threads() -> None:
    made = randomised(felrec_s(FELRecSSettings(signals=list(SIGNALS), members=2)), 3)
    threads, found = torch.get_num_threads(), []
    assert made.signals.profile
    replay(made, LOG[:2_500])
    items = made.item_scores(np.arange(made.signals.recent.items.owners, dtype=np.int32))
    users, wanted, scores, log_trust = (
        torch.rand(200, 64),
        torch.rand(200, 128),
        torch.rand(len(items.candidates), 2),
        -torch.rand(len(items.candidates)),
    )
    loss = CompiledLoss(made.signals, items, made.pair_network, torch.from_numpy(made.signals.profile.features))
    try:
        for count in (1, 3):
            torch.set_num_threads(count)
            queries, targets = Queries.before_each(LOG[2_500:2_700]), LOG.items[:200]
            with torch.no_grad():
                found.append(loss.gradients(queries, targets, users, wanted, scores, log_trust))
    finally:
        torch.set_num_threads(threads)
    for name, one in vars(found[0]).items():
        np.testing.assert_array_equal(one, getattr(found[1], name), err_msg=name)
