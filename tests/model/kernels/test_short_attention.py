"""Attention in bfloat16 against torch's own in float32, from the same inputs."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from felrec.model.kernels.short_attention import short_attention

B, N, HEADS, SIZE = 5, 9, 2, 8


def expected(packed: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
    query, key, value = packed.permute(2, 0, 3, 1, 4)
    allowed = torch.ones(N, N, dtype=torch.bool).tril_() if causal else torch.ones(N, N, dtype=torch.bool)
    if mask is not None:
        allowed = allowed & mask[:, None, None, :]
    mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=allowed)
    return mixed.transpose(1, 2).reshape(B, N, HEADS * SIZE)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_result_and_gradient_equal_those_of_float32(masked: bool, causal: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    short = torch.randn(B, N, 3, HEADS, SIZE, generator=generator).bfloat16().requires_grad_()
    long = short.detach().float().requires_grad_()
    upstream = torch.randn(B, N, HEADS * SIZE, generator=generator).bfloat16()
    mask = None
    if masked:  # the first position is always visible, so that also a causal query has something to attend to
        mask = torch.rand(B, N, generator=generator) < 0.6
        mask[:, 0] = True
    found, wanted = short_attention(short, mask, causal), expected(long, mask, causal)
    found.backward(upstream)  # type: ignore[no-untyped-call]
    wanted.backward(upstream.float())  # type: ignore[no-untyped-call]
    assert short.grad is not None
    assert long.grad is not None
    assert found.dtype == short.grad.dtype == torch.bfloat16
    torch.testing.assert_close(found.float(), wanted, atol=0.03, rtol=0.03)
    torch.testing.assert_close(short.grad.float(), long.grad, atol=0.04, rtol=0.04)


def test_a_hidden_position_does_not_matter() -> None:
    packed = torch.randn(B, N, 3, HEADS, SIZE, generator=torch.Generator().manual_seed(1)).bfloat16()
    mask = torch.ones(B, N, dtype=torch.bool)
    mask[:, :3] = False
    before = short_attention(packed, mask, causal=False)[:, 3:]
    packed[:, :3] = 100
    assert torch.equal(short_attention(packed, mask, causal=False)[:, 3:], before)
