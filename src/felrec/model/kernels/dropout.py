"""Dropout with masks from a shared pool, because drawing masks was the largest single cost on a CPU.

A pool of random values is drawn per batch, and every mask is a slice of it at a random offset. Within a mask all
values are independent; two masks of one batch may overlap. As in ordinary dropout, masks have the given rate, do not
depend on the data and are drawn for each batch. A mask is a view, so the backward pass keeps no copy of it. The
generator is passed in, so that training is reproducible and resumes exactly.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import torch
from torch import Tensor

_POOL = 1 << 22  # values: 16 MB, which fit the last-level cache of most machines
_STEPS = 65_536  # each value uses a 16-bit random number, so the rate is a multiple of 1/65536


class Masks:
    """Masks of zeros (a share `rate`) and of 1 / (1 - rate), for one batch at a time.

    >>> masks = Masks(0.5, torch.Generator().manual_seed(0))
    >>> masks.refresh()
    >>> sorted(masks.take(torch.ones(4, 25)).unique().tolist())
    [0.0, 2.0]
    """

    def __init__(self, rate: float, generator: torch.Generator) -> None:
        self.generator = generator
        self._rate = rate
        self.size = _POOL  # of the pool; part of the state for resuming
        self._pool = torch.empty(0, device=generator.device)

    def refresh(self, dtype: torch.dtype = torch.float32) -> None:
        """Draw a new pool; views of the old one stay valid.

        In bfloat16 the rate is the nearest one whose scale has few enough bits, so that the mean stays exact: 0.099
        for 0.1.
        """
        exact = _STEPS / (_STEPS - round(self._rate * _STEPS))
        self.scale = float(torch.tensor(exact, dtype=dtype))
        self._dropped = round(_STEPS - _STEPS / self.scale)
        self._pool = self._draw(self.size, dtype)

    def reserve(self, values: int) -> None:
        """Make the pool large enough for masks of this many values."""
        if 2 * values > self.size:
            self.size = 2 * values
            self.refresh(self._pool.dtype)

    def fork(self) -> Masks:
        """Masks from the same pool with their own random offsets, for another thread."""
        seed = torch.randint(2**62, (1,), generator=self.generator, device=self.generator.device)
        forked = copy(self)
        forked.generator = torch.Generator(self.generator.device).manual_seed(int(seed))
        return forked

    def take(self, like: Tensor) -> Tensor:
        """A mask of the shape of `like`: a view of the pool at a random offset."""
        self.reserve(like.numel())
        start = torch.randint(
            self.size - like.numel() + 1, (1,), generator=self.generator, device=self.generator.device
        )
        return self._pool.narrow(0, int(start), like.numel()).view(like.shape)

    def _draw(self, size: int, dtype: torch.dtype) -> Tensor:
        device = self.generator.device
        if device.type != "cpu":
            kept = torch.empty(size, device=device, dtype=dtype).bernoulli_(1 / self.scale, generator=self.generator)
            return kept.mul_(self.scale)
        words = torch.empty((size + 3) // 4, dtype=torch.int64)  # four 16-bit numbers in each
        words.random_(-(2**63), None, generator=self.generator)
        decisions = words.view(torch.int16)[:size] >= self._dropped - _STEPS // 2
        return decisions.to(dtype).mul_(self.scale)


def drop(x: Tensor, masks: Masks | None) -> Tensor:
    """`x` with a mask applied, or `x` itself without dropout."""
    return x if masks is None else x * masks.take(x)


def add_dropped(x: Tensor, y: Tensor, masks: Masks | None) -> Tensor:
    """`x` plus `y` with a mask applied: a residual connection."""
    return x + y if masks is None else torch.addcmul(x, y, masks.take(y))


def relu_dropped(x: Tensor, masks: Masks | None) -> Tensor:
    """ReLU, then dropout; the backward pass needs only the result."""
    return torch.relu(x) if masks is None else _ReluDropped.apply(x, masks.take(x), masks.scale)  # type: ignore[no-untyped-call]


class _ReluDropped(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, mask: Tensor, scale: float) -> Tensor:
        result = torch.relu(x).mul_(mask)
        ctx.save_for_backward(result)
        ctx.scale = scale
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (result,) = ctx.saved_tensors  # positive exactly where the input was and the mask kept it
        return torch.ops.aten.threshold_backward(gradients[0], result, 0).mul_(ctx.scale), None, None
