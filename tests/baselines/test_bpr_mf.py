"""BPR-MF."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from felrec.baselines.bpr_mf import BPRMF, BPRMFSettings
from felrec.data.events import Events
from felrec.data.split import Sizes
from felrec.recommender import Queries


def model() -> BPRMF:
    return BPRMF(BPRMFSettings(width=4, negatives=3), 0, "cpu", Sizes(5, 7, 9, 9))


def test_the_loss_compares_each_target_with_its_negatives() -> None:
    made, batch = model(), Events.of([0, 4, 0], [1, 6, 2], range(3))
    before = made.memory()
    loss = made.loss(batch).item()
    made.load_memory(before)
    negatives = made._negatives(3, 3)
    users, items = made.user_table.weight, made.item_table.weight
    expected = 0.0
    for event, (user, item) in enumerate([(0, 1), (4, 6), (0, 2)]):
        for other in negatives[event]:
            difference = (users[user] @ (items[item] - items[other])).item()
            expected += math.log(1 + math.exp(-difference))
    assert loss == pytest.approx(expected, rel=1e-5)


def test_negatives_are_items_of_the_training_part() -> None:
    assert set(model()._negatives(500, 3).flatten().tolist()) == set(range(7))


def test_a_new_user_is_the_mean_of_all_users() -> None:
    made = model()
    candidates = np.arange(9, dtype=np.int32)
    scores = made.score(Queries.now(np.array([2, 5, 100]), 0.0), candidates)
    mean = made.user_table.weight.mean(dim=0) @ made.item_table.weight.T
    assert torch.allclose(scores[1, :7], mean)
    assert torch.equal(scores[1], scores[2])
    assert torch.allclose(scores[0, :7], made.user_table.weight[2] @ made.item_table.weight.T)
    assert (scores[:, 7:] == -torch.inf).all()
