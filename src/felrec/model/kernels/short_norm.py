"""LayerNorm of bfloat16 on a CPU, whose weights get gradients that are summed in float32.

Torch sums them in bfloat16, over all positions of a chunk: they came out up to a hundred times too large.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


def layer_norm(x: Tensor, norm: nn.LayerNorm) -> Tensor:
    """`norm` of x (…, D), in the precision of x."""
    if x.dtype is not torch.bfloat16 or x.device.type != "cpu":
        normed: Tensor = norm(x)
        return normed
    return _ShortNorm.apply(x, norm.weight, norm.bias, norm.eps)  # type: ignore[no-untyped-call,no-any-return]


class _ShortNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
        normed, mean, scale = torch.native_layer_norm(x, x.shape[-1:], weight, bias, eps)
        ctx.save_for_backward(x, mean, scale, weight, bias)
        return normed

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        x, mean, scale, weight, bias = ctx.saved_tensors
        of_x, _, _ = torch.ops.aten.native_layer_norm_backward(
            gradients[0], x, x.shape[-1:], mean, scale, weight, bias, [True, False, False]
        )
        upstream = gradients[0].flatten(0, -2).float()  # (positions, D)
        unscaled = (x.float() - mean).mul_(scale).flatten(0, -2)
        return of_x, unscaled.mul_(upstream).sum(dim=0), upstream.sum(dim=0), None
