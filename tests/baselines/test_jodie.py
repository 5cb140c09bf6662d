"""JODIE*: its sizes, its loss against a naive loop, and what events change and what they do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from felrec.baselines.jodie import JODIE, JODIESettings
from felrec.config import TrainingSettings
from felrec.data.batches import TimeBatch
from felrec.data.events import Events
from felrec.data.pending import Pending
from felrec.data.split import Sizes
from felrec.evaluation.protocols import replay
from felrec.recommender import Queries
from felrec.training.checkpoint import RunDirectory
from felrec.training.trainer import Trainer
from killed import KillAfter, KilledError

GENERATOR = np.random.default_rng(0)
EVENTS = Events.of(GENERATOR.integers(0, 12, 200), GENERATOR.integers(0, 9, 200), np.arange(200) * 1000.0)
ITEMS = np.arange(9, dtype=np.int32)


def jodie(users: int = 12, items: int = 9, **settings: Any) -> JODIE:
    return JODIE(JODIESettings(**{"width": 8, **settings}), 0, "cpu", Sizes(users, items, users, items))


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def scores(model: JODIE, time: float = 1e6) -> Tensor:
    return model.score(Queries.now(np.arange(12), time), ITEMS)


def test_parameters_are_those_of_the_papers_tables() -> None:
    """28.56M on MovieLens 25M and 160.25M on Twitch, of which all but a few belong to single users and items."""
    one, few = jodie(1, 1, width=128), jodie(3, 6, width=128)
    assert few.parameter_count() - one.parameter_count() == 7 * 128
    shared = one.parameter_count() - 2 * 128
    assert round((shared + (162_541 + 59_047) * 128) / 1e6, 2) == 28.56
    assert round((shared + (817_625 + 432_813) * 128) / 1e6, 2) == 160.25


class Naive:
    """The same model, one event at a time and in plain words."""

    def __init__(self, model: JODIE) -> None:
        self.model = model
        self.users: dict[int, Tensor] = {}
        self.items: dict[int, Tensor] = {}
        self.when: dict[tuple[str, int], float] = {}
        self.last: dict[int, int] = {}

    def elapsed(self, kind: str, row: int, time: float) -> Tensor:
        if self.model.settings.time == "off" or (kind, row) not in self.when:
            return torch.zeros(1)
        return torch.tensor([np.log1p(time - self.when[kind, row]) / 10], dtype=torch.float32)

    def loss(self, batch: Events) -> Tensor:
        model, total = self.model, torch.zeros(())
        users, items, when = dict(self.users), dict(self.items), dict(self.when)  # after the batch
        for u, i, t in zip(batch.users.tolist(), batch.items.tolist(), batch.times.tolist(), strict=True):
            user, item = self.users.get(u, model.first_user), self.items.get(i, model.first_item)
            before = self.last.get(u)
            last = model.first_item if before is None else self.items.get(before, model.first_item)
            last_learned = torch.zeros(8) if before is None else model.item_table.weight[before]
            user_time, item_time = self.elapsed("user", u, t), self.elapsed("item", i, t)
            projected = user * (1 + model.projection(user_time))
            predicted = model.prediction(torch.cat([projected, last, last_learned, model.user_table.weight[u]]))
            moved_user = model.user_rnn(torch.cat([item, user_time])[None], user[None])[0]
            moved_item = model.item_rnn(torch.cat([user, item_time])[None], item[None])[0]
            target = torch.cat([item, model.item_table.weight[i]])
            for one, other in ((predicted, target), (moved_user, user), (moved_item, item)):
                total = total + ((one / one.norm() - (other / other.norm()).detach()) ** 2).mean()
            users[u], items[i] = moved_user.detach(), moved_item.detach()
            when["user", u], when["item", i], self.last[u] = t, t, i
        self.users, self.items, self.when = users, items, when
        return total / len(batch)


@pytest.mark.parametrize("time", ["off", "on"])
def test_losses_and_gradients_equal_those_of_a_naive_loop(time: str) -> None:
    model, other = jodie(time=time), jodie(time=time)
    naive = Naive(other)
    for batch in EVENTS.blocks(50):
        one, two = model.loss(TimeBatch(batch)), naive.loss(batch)
        assert torch.allclose(one, two, atol=1e-6)
        for parameters, loss in ((model.parameters(), one), (other.parameters(), two)):
            torch.autograd.backward(loss, inputs=list(parameters))
    for (name, mine), theirs in zip(model.named_parameters(), other.parameters(), strict=True):
        assert mine.grad is not None
        assert theirs.grad is not None
        assert torch.allclose(mine.grad, theirs.grad, atol=1e-5), name


def test_events_that_are_not_trained_on_still_move() -> None:
    model, other = jodie(), jodie()
    half = np.arange(200) % 2 == 0
    some, all_of_them = model.loss(TimeBatch(EVENTS, half)), other.loss(TimeBatch(EVENTS))
    assert some != all_of_them
    assert same(model.state(), other.state())


def test_scores_are_cosines_with_what_the_user_took_last() -> None:
    model = jodie(online_lr=0)
    replay(model, EVENTS)
    users = torch.cat([model.users.vectors.read(np.array([3])), model.user_table.weight[3:4]], dim=1)
    item = 5
    asked = Queries(np.array([3], dtype=np.int32), np.array([1e6]), Pending.of([[2, item]]))
    last = torch.cat([model.items.vectors.read(np.array([item])), model.item_table.weight[item : item + 1]], dim=1)
    inputs = torch.cat([users[:, :8] * (1 + model.projection.bias), last, users[:, 8:]], dim=1)
    vectors = torch.cat([model.items.vectors.read(ITEMS), model.item_table.weight], dim=1)
    expected = torch.cosine_similarity(model.prediction(inputs), vectors)
    assert torch.allclose(model.score(asked, ITEMS)[0], expected, atol=1e-6)


def test_every_block_is_learned_from_and_reset_takes_it_back() -> None:
    model = jodie()
    weights = model.weights()
    replay(model, EVENTS[:100])
    assert same(model.weights(), weights)
    assert not torch.equal(model.prediction.weight, weights["prediction.weight"])
    model.reset()
    assert torch.equal(model.prediction.weight, weights["prediction.weight"])
    assert not any(tensor.numel() for name, tensor in model.state().items())


def test_without_an_online_rate_the_parameters_stay() -> None:
    model = jodie(online_lr=0)
    replay(model, EVENTS)
    assert torch.equal(model.prediction.weight, model.weights()["prediction.weight"])


def test_a_loaded_state_goes_on_as_the_saved_one() -> None:
    """The moments of the steps taken so far are part of the state."""
    model, fresh = jodie(), jodie()
    for block in EVENTS[:150].blocks(25):
        model.observe(block)
    fresh.load_weights(model.weights())
    fresh.load_state(model.state())
    for one in (model, fresh):
        one.observe(EVENTS[150:])
    assert torch.equal(scores(model), scores(fresh))
    assert same(model.state(), fresh.state())


def test_a_state_from_before_events_brings_back_the_trained_parameters() -> None:
    model = jodie()
    before = model.state()
    weights = model.weights()
    model.observe(EVENTS)
    model.load_state(before)
    assert torch.equal(model.prediction.weight, weights["prediction.weight"])


def test_time_counts_only_if_it_is_on() -> None:
    for time, differs in (("off", False), ("on", True)):
        model = jodie(time=time)
        model.observe(EVENTS)
        assert torch.equal(scores(model, 2e5), scores(model, 9e6)) != differs


def test_the_published_order_scores_from_what_was_before_the_batch() -> None:
    model, other = jodie(), jodie()
    for one in (model, other):
        one.observe(EVENTS[:100])
    block = EVENTS[100:150]
    expected = other.score(Queries.before_each(block), ITEMS)
    assert torch.equal(model.observe_then_score(block, ITEMS), expected)
    other.observe(block)
    assert same(model.state(), other.state())


def trainer(path: Path, *listeners: Any) -> Trainer:
    run = RunDirectory.open(path) if (path / "manifest.json").exists() else RunDirectory.create(path, {})
    settings = TrainingSettings(epochs=3, batch_size=32, optimizer="adamw", checkpoint_seconds=1e-6)
    model = jodie()

    def validate() -> dict[str, float]:
        model.observe(EVENTS[:20])  # which also changes the parameters
        return {"rank": 0.5, "hr@10": 0.0, "mrr": 0.0}

    made = Trainer(model, EVENTS, settings, run, validate, listeners)
    made.resume()
    return made


@pytest.mark.parametrize("killed_at", [1, 7, 10, 15])
def test_resuming_gives_the_result_of_an_uninterrupted_run(tmp_path: Path, killed_at: int) -> None:
    whole = trainer(tmp_path / "whole")
    whole.fit()
    with pytest.raises(KilledError):
        trainer(tmp_path / "cut", KillAfter(killed_at)).fit()
    second = trainer(tmp_path / "cut")
    second.fit()
    assert same(whole.model.weights(), second.model.weights())
    assert whole.run.manifest["best"]["sha256"] == second.run.manifest["best"]["sha256"]
