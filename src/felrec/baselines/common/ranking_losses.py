"""Losses over the items of a catalogue: a few sampled negatives (BPR), or all items (cross-entropy)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

_SCORES = 1 << 20  # scores computed at a time on a CPU, so that they stay in its caches


def bpr(positive: Tensor, negative: Tensor) -> Tensor:
    """Bayesian personalised ranking (Rendle et al. 2009): the sum of -ln σ(positive - negative).

    Scores (T,) of targets and (T, K) of sampled negatives. A sum, not a mean, as in the authors' code, so that the step
    of an item's vector per event does not depend on the batch size.
    """
    return -F.logsigmoid(positive[:, None] - negative).sum()


def catalogue_cross_entropy(vectors: Tensor, items: Tensor, targets: Tensor) -> Tensor:
    """The sum of -ln softmax(vectors @ items.T)[target], for vectors (T, D), items (C, D) and targets (T,).

    The scores (T, C) are computed in pieces and not kept for the backward pass: gradients are computed with the loss.

    >>> vectors, items = torch.randn(5, 2), torch.randn(7, 2)
    >>> loss = catalogue_cross_entropy(vectors, items, torch.arange(5))
    >>> torch.allclose(loss, F.cross_entropy(vectors @ items.T, torch.arange(5), reduction="sum"))
    True
    """
    with torch.autocast(vectors.device.type, enabled=False):
        loss: Tensor = _CrossEntropy.apply(vectors.float(), items.float(), targets)  # type: ignore[no-untyped-call]
    return loss


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, vectors: Tensor, items: Tensor, targets: Tensor) -> Tensor:
        loss = vectors.new_zeros(())
        vector_gradient, item_gradient = torch.empty_like(vectors), torch.zeros_like(items)
        for piece in _pieces(len(vectors), len(items), vectors.device):
            scores, target = vectors[piece] @ items.T, targets[piece, None]  # (S, C), (S, 1)
            scores -= scores.amax(dim=1, keepdim=True)
            loss -= scores.gather(1, target).sum()
            difference = scores.exp_()
            total = difference.sum(dim=1, keepdim=True)
            loss += total.log().sum()
            difference /= total  # the softmax; the next line subtracts the one-hot target
            difference.scatter_add_(1, target, torch.full_like(total, -1))
            torch.mm(difference, items, out=vector_gradient[piece])
            item_gradient.addmm_(difference.T, vectors[piece])
        ctx.save_for_backward(vector_gradient, item_gradient)
        return loss

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        vector_gradient, item_gradient = ctx.saved_tensors
        return gradients[0] * vector_gradient, gradients[0] * item_gradient, None


def _pieces(rows: int, columns: int, device: torch.device) -> list[slice]:
    size = max(1, _SCORES // columns) if device.type == "cpu" else max(1, 64 * _SCORES // columns)
    return [slice(start, start + size) for start in range(0, rows, size)]
