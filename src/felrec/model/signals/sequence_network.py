"""Reads a sequence of item vectors and says which item is wanted next, as a vector to compare with those of items.

One block of a Transformer, of which only the output at the newest item is needed.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812


class SequenceNetwork(nn.Module):
    """All weights of the signal. Before training nothing is wanted: its output is zero."""

    def __init__(self, width: int, size: int, heads: int, feed_forward: int, history_length: int) -> None:
        super().__init__()
        self.width, self.size, self.heads, self.inner = width, size, heads, feed_forward
        self.enter = nn.Linear(width, size)
        self.positions = nn.Parameter(0.1 * torch.randn(history_length, size))
        self.attention_norm = nn.LayerNorm(size)
        self.query = nn.Linear(size, size, bias=False)
        self.key_value = nn.Linear(size, 2 * size, bias=False)
        self.mix = nn.Linear(size, size, bias=False)
        self.inner_norm = nn.LayerNorm(size)
        self.expand = nn.Linear(size, feed_forward)
        self.contract = nn.Linear(feed_forward, size)
        self.last_norm = nn.LayerNorm(size)
        self.leave = nn.Linear(size, width, bias=False)
        nn.init.normal_(self.enter.weight)  # of unit vectors, so that entries are about 1
        nn.init.zeros_(self.leave.weight)

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        """What is wanted (B, D) after the items of `vectors` (B, N, D), oldest first; zero where `mask` has none."""
        batch, length = mask.shape
        part = self.size // self.heads
        x = self.enter(vectors) + self.positions[-length:]
        normal = self.attention_norm(x)
        keys, values = self.key_value(normal).view(batch, length, 2, self.heads, part).unbind(dim=2)
        query = self.query(normal[:, -1]).view(batch, self.heads, part)
        weight = torch.einsum("bhp,bnhp->bhn", query, keys) / math.sqrt(part)
        weight = torch.softmax(weight.masked_fill(~mask[:, None], -1e9), dim=2)
        mixed = torch.einsum("bhn,bnhp->bhp", weight, values).reshape(batch, self.size)
        newest = x[:, -1] + self.mix(mixed)
        newest = newest + self.contract(F.relu(self.expand(self.inner_norm(newest))))
        wanted: Tensor = self.leave(self.last_norm(newest))
        return wanted * mask[:, -1:]

    def parts(self) -> list[Tensor]:
        """All weights in the order of sequence.h; matrices as (inputs, outputs)."""
        return [
            *(self.enter.weight.T, self.positions + self.enter.bias),
            *(self.attention_norm.weight, self.attention_norm.bias),
            *(self.query.weight.T, self.key_value.weight.T, self.mix.weight.T),
            *(self.inner_norm.weight, self.inner_norm.bias),
            *(self.expand.weight.T, self.expand.bias, self.contract.weight.T, self.contract.bias),
            *(self.last_norm.weight, self.last_norm.bias, self.leave.weight.T),
        ]
