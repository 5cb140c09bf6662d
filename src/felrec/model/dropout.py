"""Dropout that takes its generator as an argument, so that a run can be resumed and repeated exactly."""

from __future__ import annotations

import torch
from torch import Tensor, nn

_STEPS = 65_536  # masks compare 16-bit random numbers, so the rate is a multiple of 1/65536


class Dropout(nn.Module):
    """Zero a share of the values and scale up the rest, in training only.

    On the CPU one 64-bit random number decides for four values: drawing masks is otherwise
    the largest single cost of training there.
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """Same shape as `x`."""
        if not self.training or self.rate == 0:
            return x
        if x.device.type != "cpu":
            kept = torch.empty_like(x).bernoulli_(1 - self.rate, generator=generator)
            return x * kept.div_(1 - self.rate)
        dropped_steps = round(self.rate * _STEPS)
        words = torch.empty((x.numel() + 3) // 4, dtype=torch.int64)
        words.random_(-(2**63), None, generator=generator)  # type: ignore[call-overload]
        draws = words.view(torch.int16)[: x.numel()].view(x.shape)
        kept = (draws >= dropped_steps - _STEPS // 2).to(x.dtype)
        return x * kept.mul_(_STEPS / (_STEPS - dropped_steps))
