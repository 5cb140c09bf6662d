"""InfoNCE whose gradient is computed with the loss, so that no table of scores is kept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

_SCORES = 1 << 19  # scores computed at a time: 2 MB


def info_nce(queries: Tensor, keys: Tensor, negatives: Tensor, temperature: float) -> Tensor:
    """Mean of -log softmax of each query (B, D) with its key (B, D) among negatives (K, D).

    Only the queries get a gradient. It is computed together with the loss, some queries at a time, so that the scores
    (B, K) stay in the CPU cache and are not kept.
    """
    with torch.autocast(queries.device.type, enabled=False):  # a score of ±14 has only one decimal in bfloat16
        loss: Tensor = _InfoNCE.apply(queries.to(negatives.dtype), keys.to(negatives.dtype), negatives, temperature)  # type: ignore[no-untyped-call]
    return loss


class _InfoNCE(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, queries: Tensor, keys: Tensor, negatives: Tensor, temperature: float) -> Tensor:
        gradient = torch.empty_like(queries)
        scaled = queries / temperature
        positive = (scaled * keys).sum(dim=1)  # (B,)
        losses = torch.empty_like(positive)
        for part in _parts(len(queries), len(negatives)):
            weights = scaled[part] @ negatives.T  # (b, K)
            highest = torch.maximum(weights.amax(dim=1), positive[part])
            weights.sub_(highest[:, None]).exp_()
            own = torch.exp(positive[part] - highest)
            total = weights.sum(dim=1).add_(own)
            losses[part] = total.log() + highest - positive[part]
            mixed = weights @ negatives + (own - total)[:, None] * keys[part]
            gradient[part] = mixed / (total * temperature)[:, None]
        ctx.save_for_backward(gradient)
        return losses.mean()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        (gradient,) = ctx.saved_tensors
        return gradient * (gradients[0] / len(gradient)), None, None, None


def _parts(queries: int, negatives: int) -> Iterator[slice]:
    """Slices of queries whose scores fit into a CPU cache."""
    step = max(1, _SCORES // negatives)
    for start in range(0, queries, step):
        yield slice(start, start + step)
