"""The encoder of FELRec-S: before training it is the mean of a history, which already works well."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from felrec.model.kernels.dropout import Masks
from felrec.model.paper.attention import SelfAttention


class PooledEncoder(nn.Module):
    """A weighted mean of the cached vectors; a Transformer computes the weights from vectors and positions.

    The vectors themselves are averaged. If the Transformer's outputs were averaged, a common direction would soon
    dominate the differences between them.
    """

    def __init__(self, width: int, layers: int, heads: int, feed_forward: int, history_length: int) -> None:
        super().__init__()
        self.types = nn.Parameter(torch.zeros(2, width))
        self.positions = nn.Parameter(torch.zeros(history_length, width))
        self.blocks = nn.ModuleList(PreNormBlock(width, heads, feed_forward) for _ in range(layers))
        self.attend = nn.Linear(width, 1, bias=False)
        self.recency = nn.Parameter(torch.zeros(2, history_length))
        self.output = nn.Linear(width, width, bias=False)
        for start_as_zero in (self.attend, self.output):
            for parameter in start_as_zero.parameters():
                nn.init.zeros_(parameter)

    def forward(self, vectors: Tensor, mask: Tensor, kind: int, dropout: Masks | None = None) -> Tensor:
        """Encode vectors (B, N, D) with mask (B, N), true for valid positions, as (B, D)."""
        newest = slice(len(self.positions) - vectors.shape[1], None)
        x = vectors + self.types[kind] + self.positions[newest]
        attention_mask = None if bool(mask.all()) else mask
        for block in self.blocks:
            x = block(x, attention_mask)
        weight = self.attend(x).squeeze(-1) + self.recency[kind, newest]  # (B, N)
        weight = torch.softmax(weight.masked_fill(~mask, -torch.inf), dim=1)
        pooled = torch.einsum("bnd,bn->bd", vectors, weight)
        encoded: Tensor = pooled + self.output(pooled)
        return encoded


class PreNormBlock(nn.Module):
    """LayerNorm before attention and before the feed-forward layer; both output zero before training."""

    def __init__(self, width: int, heads: int, feed_forward: int) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(width)
        self.attention = SelfAttention(width, heads)
        self.feed_forward_norm = nn.LayerNorm(width)
        self.expand = nn.Linear(width, feed_forward)
        self.contract = nn.Linear(feed_forward, width)
        for parameter in (self.attention.output.weight, self.contract.weight, self.contract.bias):
            nn.init.zeros_(parameter)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """(B, N, D) -> (B, N, D)."""
        x = x + self.attention(self.attention_norm(x), mask)
        transformed: Tensor = x + self.contract(F.relu(self.expand(self.feed_forward_norm(x))))
        return transformed
