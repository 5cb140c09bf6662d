"""The queue of past projections that FELRec-Q contrasts with (after MoCo)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812


class Queue(nn.Module):
    """A ring of the newest K projections, as unit vectors. It starts random; any batch size works with any queue size.

    >>> queue = Queue(3, 2, torch.Generator().manual_seed(0))
    >>> queue.push(torch.tensor([[1.0, 0.0]] * 2)); queue.push(torch.tensor([[0.0, 1.0]] * 2))
    >>> queue.keys.tolist()
    [[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]
    """

    keys: Tensor  # (K, D)

    def __init__(self, size: int, width: int, generator: torch.Generator) -> None:
        super().__init__()
        keys = F.normalize(torch.randn(size, width, generator=generator), dim=1)
        self.register_buffer("keys", keys, persistent=False)  # not part of the weights: only training uses it
        self.next = 0

    @torch.no_grad()
    def push(self, projections: Tensor) -> None:
        """Replace the oldest entries by `projections` (B, D); of more than K only the last K are kept."""
        size = len(self.keys)
        newest = projections.detach()[-size:]
        start = self.next + len(projections) - len(newest)
        at = torch.arange(start, start + len(newest), device=self.keys.device) % size
        self.keys = self.keys.index_copy(0, at, newest.to(self.keys.dtype))  # a new tensor: autograd keeps the old one
        self.next = (self.next + len(projections)) % size
