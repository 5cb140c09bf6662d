"""BPR and cross-entropy against loops."""

from __future__ import annotations

import math

import pytest
import torch

from felrec.baselines.common.ranking_losses import bpr, catalogue_cross_entropy


def test_bpr_is_the_sum_over_targets_and_negatives() -> None:
    generator = torch.Generator().manual_seed(0)
    positive, negative = torch.randn(4, generator=generator), torch.randn(4, 3, generator=generator)
    expected = 0.0
    for target in range(4):
        for other in range(3):
            expected -= math.log(1 / (1 + math.exp(float(negative[target, other] - positive[target]))))
    assert float(bpr(positive, negative)) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("at_once", [1, 20, 1000])
def test_cross_entropy_and_its_gradients(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("felrec.baselines.common.ranking_losses._SCORES", at_once)
    generator = torch.Generator().manual_seed(0)
    vectors = torch.randn(11, 4, generator=generator, requires_grad=True)
    items = torch.randn(7, 4, generator=generator, requires_grad=True)
    targets = torch.randint(7, (11,), generator=generator)
    loss = catalogue_cross_entropy(vectors, items, targets) / 3
    naive = torch.zeros(())
    for vector, target in zip(vectors, targets, strict=True):
        scores = torch.stack([vector @ item for item in items])
        naive = naive - (scores[target] - scores.exp().sum().log()) / 3
    assert torch.allclose(loss, naive)
    found = torch.autograd.grad(loss, (vectors, items))
    for one, other in zip(found, torch.autograd.grad(naive, (vectors, items)), strict=True):
        assert torch.allclose(one, other, atol=1e-5)


def test_cross_entropy_survives_large_scores() -> None:
    vectors = torch.tensor([[1000.0]], requires_grad=True)
    loss = catalogue_cross_entropy(vectors, torch.tensor([[1.0], [-1.0]]), torch.tensor([0]))
    assert loss.item() == 0.0
    assert torch.isfinite(torch.autograd.grad(loss, vectors)[0]).all()
