"""LayerNorm in bfloat16 against float32: torch's own sums of gradients fail this."""

from __future__ import annotations

import torch
from torch import nn

from felrec.model.kernels.short_norm import layer_norm


def test_result_and_gradients_equal_those_of_float32() -> None:
    generator, norm = torch.Generator().manual_seed(0), nn.LayerNorm(32)
    short = torch.randn(32, 64, 32, generator=generator).bfloat16().requires_grad_()
    long = short.detach().float().requires_grad_()
    upstream = (torch.randn(32, 64, 32, generator=generator) + 0.5).bfloat16()
    found, wanted = layer_norm(short, norm), norm(long)
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.float(), wanted, atol=0.02, rtol=0.02)
    near = torch.autograd.grad(found, (short, norm.weight, norm.bias), upstream)
    exact = torch.autograd.grad(wanted, (long, norm.weight, norm.bias), upstream.float())
    torch.testing.assert_close(near[0].float(), exact[0], atol=0.05, rtol=0.02)
    torch.testing.assert_close(near[1:], exact[1:], atol=0.2, rtol=0.001)  # sums of 2,048 positions
