"""The Transformer block of FELRec's encoder and of SASRec (post-norm, as in the paper)."""

from __future__ import annotations

from typing import Self

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from felrec.config import Settings
from felrec.model.kernels.dropout import Masks, add_dropped, relu_dropped
from felrec.model.kernels.short_attention import short_attention
from felrec.model.kernels.short_norm import layer_norm


class TransformerSettings(Settings):
    """Sizes of the blocks; the defaults are the paper's."""

    width: int = Field(128, ge=2, description="size d of every vector")
    layers: int = Field(3, ge=1, description="Transformer blocks of the encoder")
    heads: int = Field(4, ge=1, description="attention heads")
    feed_forward: int = Field(256, ge=1, description="inner size of the feed-forward layers")
    dropout: float = Field(0.1, ge=0, le=0.99, description="dropout rate of the encoder")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.width % self.heads or self.width % 2:
            raise ValueError(f"width {self.width} must be even and a multiple of heads {self.heads}")
        return self


class SelfAttention(nn.Module):
    """Multi-head attention, bidirectional or from each position to itself and earlier ones; no bias."""

    def __init__(self, width: int, heads: int, causal: bool = False) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.query_key_value = nn.Linear(width, 3 * width, bias=False)
        self.output = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """(B, N, D) -> (B, N, D); `mask` (B, N) is true where a position may be attended to."""
        B, N, D = x.shape  # noqa: N806
        packed = self.query_key_value(x).view(B, N, 3, self.heads, D // self.heads)
        output: Tensor = self.output(self._mix(packed, mask).reshape(B, N, D))
        return output

    def _mix(self, packed: Tensor, mask: Tensor | None) -> Tensor:
        """(B, N, 3, H, D/H) -> (B, N, H, D/H)."""
        if packed.dtype is torch.bfloat16 and packed.device.type == "cpu":
            return short_attention(packed, mask, self.causal)
        query, key, value = packed.permute(2, 0, 3, 1, 4)  # each (B, H, N, D/H)
        allowed = None if mask is None else mask[:, None, None, :]  # broadcast: never N × N per sequence
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=allowed, is_causal=self.causal)
        return mixed.transpose(1, 2)


class TransformerBlock(nn.Module):
    """Attention and a feed-forward layer, each with dropout, a residual and LayerNorm after it."""

    def __init__(self, width: int, heads: int, feed_forward: int, causal: bool = False) -> None:
        super().__init__()
        self.attention = SelfAttention(width, heads, causal)
        self.attention_norm = nn.LayerNorm(width)
        self.expand = nn.Linear(width, feed_forward)
        self.contract = nn.Linear(feed_forward, width)
        self.feed_forward_norm = nn.LayerNorm(width)

    def forward(self, x: Tensor, mask: Tensor | None, dropout: Masks | None) -> Tensor:
        """(B, N, D) -> (B, N, D)."""
        x = layer_norm(add_dropped(x, self.attention(x, mask), dropout), self.attention_norm)
        hidden = relu_dropped(self.expand(x), dropout)  # (B, N, F)
        return layer_norm(add_dropped(x, self.contract(hidden), dropout), self.feed_forward_norm)
