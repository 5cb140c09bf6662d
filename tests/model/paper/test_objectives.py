"""Both losses against naive loops, and where their gradients go."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from felrec.model.kernels.info_nce import info_nce
from felrec.model.paper.objectives import Contrast, Predict, distance


def unit(*shape: int, seed: int) -> Tensor:
    return torch.nn.functional.normalize(torch.randn(*shape, generator=torch.Generator().manual_seed(seed)), dim=-1)


def contrast(**changes: object) -> Contrast:
    arguments: dict[str, Any] = {
        "width": 8,
        "queue_size": 16,
        "temperature": 0.07,
        "normalisation": "batch",
        "projection": "mlp",
        "share_projections": False,
        "generator": torch.Generator().manual_seed(0),
    }
    return Contrast(**{**arguments, **changes})


def test_info_nce_matches_a_loop() -> None:
    queries, keys, negatives = unit(5, 8, seed=1), unit(5, 8, seed=2), unit(7, 8, seed=3)
    total = 0.0
    for query, key in zip(queries, keys, strict=True):
        positive = math.exp(float(query @ key) / 0.07)
        others = sum(math.exp(float(query @ negative) / 0.07) for negative in negatives)
        total -= math.log(positive / (positive + others))
    assert float(info_nce(queries, keys, negatives, 0.07)) == pytest.approx(total / 5, rel=1e-5)


def test_distance_matches_a_loop() -> None:
    predicted, target = unit(4, 6, seed=1) * 3, unit(4, 6, seed=2) * 5
    naive = [2 - 2 * float(p @ t) / (float(p.norm()) * float(t.norm())) for p, t in zip(predicted, target, strict=True)]
    assert float(distance(predicted, target)) == pytest.approx(sum(naive) / 4, rel=1e-5)


def test_contrast_is_the_sum_of_both_sides_and_queues_take_the_batch_afterwards() -> None:
    objective = contrast(projection="none")
    users, items = unit(4, 8, seed=1), unit(4, 8, seed=2)
    user_keys, item_keys = objective.user_queue.keys.clone(), objective.item_queue.keys.clone()
    loss = objective(users, items)
    expected = info_nce(users, items, item_keys, 0.07) + info_nce(items, users, user_keys, 0.07)
    assert torch.allclose(loss, expected)
    assert torch.allclose(objective.user_queue.keys[:4], users)
    assert torch.allclose(objective.item_queue.keys[:4], items)
    assert torch.equal(objective.item_queue.keys[4:], item_keys[4:])


def test_keys_and_targets_get_no_gradient() -> None:
    users, items = unit(4, 8, seed=1).requires_grad_(), unit(4, 8, seed=2)
    only_users = info_nce(torch.nn.functional.normalize(users, dim=1), items, unit(5, 8, seed=3), 0.07)
    both = contrast(projection="none")
    both.user_queue.keys, both.item_queue.keys = unit(5, 8, seed=4), unit(5, 8, seed=3)
    (alone,) = torch.autograd.grad(only_users, users)
    (together,) = torch.autograd.grad(both(users, items), users)
    assert torch.allclose(alone, together, atol=1e-6)  # L_x adds nothing: its keys are detached


def test_prediction_stops_the_gradient_of_the_target() -> None:
    objective = Predict(8, "layer", projection="mlp", share_projections=False)
    items = unit(4, 8, seed=2).requires_grad_()
    users = unit(4, 8, seed=1)
    predicted = objective.user_predictor(objective.user_projection(users))
    loss_of_users = distance(predicted, objective.project_items(items).detach())
    assert torch.autograd.grad(loss_of_users, [items], allow_unused=True)[0] is None
    (whole,) = torch.autograd.grad(objective(users, items), items)
    own = distance(
        objective.item_predictor(objective.item_projection(items)), objective.user_projection(users).detach()
    )
    assert torch.allclose(whole, torch.autograd.grad(own, items)[0], atol=1e-6)


@pytest.mark.parametrize("share", [False, True])
def test_sharing_projections_halves_the_heads(share: bool) -> None:
    count = sum(p.numel() for p in contrast(share_projections=share).parameters())
    one = sum(p.numel() for p in contrast().user_projection.parameters())
    assert count == (one if share else 2 * one)
    predict = Predict(8, "batch", projection="mlp", share_projections=share)
    assert (predict.item_predictor is predict.user_predictor) is share


def test_without_projection_the_contrast_has_no_weights() -> None:
    assert list(contrast(projection="none").parameters()) == []


def test_layer_normalisation_replaces_batch_normalisation() -> None:
    kinds = {type(part).__name__ for part in contrast(normalisation="layer").modules()}
    assert "LayerNorm" in kinds
    assert "BatchNorm1d" not in kinds
