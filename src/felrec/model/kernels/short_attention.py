"""Attention in bfloat16 on a CPU, by batched matrix products that the processor computes natively.

Torch's own attention is made for float32 there: its backward pass in bfloat16 takes four times as long as this one.
Histories are short, so the weights of all pairs of positions are small enough to be kept for the backward pass.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

_NEVER = -1e30  # added to the score of a position that may not be attended to; finite, so nothing becomes NaN


def short_attention(packed: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
    """Mixed values (B, N, D) of queries, keys and values packed as (B, N, 3, heads, D / heads).

    `mask` (B, N) is true where a position may be attended to.
    """
    N, heads = packed.shape[1], packed.shape[3]  # noqa: N806
    barred = None
    if mask is not None:
        barred = torch.zeros(mask.shape, dtype=packed.dtype, device=packed.device).masked_fill_(~mask, _NEVER)
        barred = barred.repeat_interleave(heads, dim=0)[:, None, :]  # (B · heads, 1, N)
    if causal:
        later = torch.full((N, N), _NEVER, dtype=packed.dtype, device=packed.device).triu_(1)
        barred = later if barred is None else barred + later
    with torch.autocast(packed.device.type, enabled=False):  # it would compute the softmax in float32
        mixed: Tensor = _ShortAttention.apply(packed, barred)  # type: ignore[no-untyped-call]
    return mixed


class _ShortAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, packed: Tensor, barred: Tensor | None) -> Tensor:
        B, N, _, heads, size = packed.shape  # noqa: N806
        parts = packed.permute(2, 0, 3, 1, 4).reshape(3, B * heads, N, size)
        query, key, value = parts
        scale = size**-0.5
        if barred is None:
            scores = torch.bmm(query, key.transpose(1, 2)).mul_(scale)
        else:
            scores = torch.baddbmm(barred, query, key.transpose(1, 2), alpha=scale)
        weights = torch.softmax(scores, dim=-1)  # (B · heads, N, N)
        ctx.save_for_backward(parts, weights)
        return torch.bmm(weights, value).view(B, heads, N, size).transpose(1, 2).reshape(B, N, heads * size)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        parts, weights = ctx.saved_tensors
        query, key, value = parts
        B, N, _ = gradients[0].shape  # noqa: N806
        heads, size = len(query) // B, query.shape[2]
        of_mixed = gradients[0].view(B, N, heads, size).transpose(1, 2).reshape(B * heads, N, size)
        of_weights = torch.bmm(of_mixed, value.transpose(1, 2))
        of_scores = torch._softmax_backward_data(of_weights, weights, -1, weights.dtype).mul_(size**-0.5)
        of_parts = torch.stack(
            [
                torch.bmm(of_scores, key),
                torch.bmm(of_scores.transpose(1, 2), query),
                torch.bmm(weights.transpose(1, 2), of_mixed),
            ]
        )
        return of_parts.view(3, B, heads, N, size).permute(1, 3, 0, 2, 4).contiguous(), None
