"""The encoder f: encodes a sequence of cached vectors as one new vector (section "Encoder" of the paper)."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from felrec.model.kernels.dropout import Masks, drop
from felrec.model.paper.attention import TransformerBlock

ITEM_SEQUENCE = 0  # the history of a user
USER_SEQUENCE = 1  # the history of an item


class Encoder(nn.Module):
    """Shared by users and items; a type vector distinguishes the two kinds of sequence."""

    positions: Tensor

    def __init__(
        self,
        width: int = 128,
        layers: int = 3,
        heads: int = 4,
        feed_forward: int = 256,
        history_length: int = 64,
        type_embedding: bool = True,
    ) -> None:
        super().__init__()
        self.width = width
        self.types = nn.Parameter(torch.zeros(2, width)) if type_embedding else None
        self.register_buffer("positions", sinusoids(history_length, width).flip(0), persistent=False)  # newest first
        self.input_norm = nn.LayerNorm(width)
        self.blocks = nn.ModuleList(TransformerBlock(width, heads, feed_forward) for _ in range(layers))
        self.output = nn.Linear(width, width)

    def forward(self, vectors: Tensor, mask: Tensor, kind: int, dropout: Masks | None = None) -> Tensor:
        """Encode vectors (B, N, D) with mask (B, N), true for valid positions, as (B, D).

        Sequences may be trimmed on the left: positions are counted from the newest entry.
        """
        x = vectors if self.types is None else vectors + self.types[kind]
        x = x * math.sqrt(self.width) + self.positions[len(self.positions) - x.shape[1] :]
        x = self.input_norm(drop(x, dropout)).to(self.blocks_precision)
        attention_mask = None if bool(mask.all()) else mask
        for block in self.blocks:
            x = block(x, attention_mask, dropout)
        weight = mask.to(vectors.dtype) / mask.sum(dim=1, keepdim=True)  # (B, N): the mean over valid positions
        pooled = torch.einsum("bnd,bn->bd", x.to(vectors.dtype), weight)
        encoded: Tensor = self.output(pooled)
        return encoded

    @property
    def blocks_precision(self) -> torch.dtype:
        """The precision of the blocks, in which almost all arithmetic is; the rest has that of the vectors."""
        return next(self.blocks.parameters()).dtype


def with_empty_slot(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The mask (B, N) of histories, with one valid empty position before each history shorter than N.

    So even an empty history has a position to encode.

    >>> with_empty_slot(np.array([[False, False, True], [False, False, False], [True, True, True]])).tolist()
    [[False, True, True], [False, False, True], [True, True, True]]
    """
    visible = np.ones_like(mask)
    visible[:, :-1] = mask[:, 1:] | mask[:, :-1]
    return visible


def sinusoids(length: int, width: int) -> Tensor:
    """The fixed positional encoding of "Attention is all you need", (length, width)."""
    position = torch.arange(length, dtype=torch.float32)[:, None]
    frequency = torch.exp(torch.arange(0, width, 2) * -(math.log(10_000) / width))
    table = torch.zeros(length, width)
    table[:, 0::2] = torch.sin(position * frequency)
    table[:, 1::2] = torch.cos(position * frequency)
    return table


def initialise(module: nn.Module, generator: torch.Generator) -> None:
    """Draw the initial weights from `generator`: the usual ranges for linear layers, N(0, 1) for types."""
    for part in module.modules():
        if isinstance(part, nn.Linear):
            bound = 1 / math.sqrt(part.in_features)
            for parameter in part.parameters(recurse=False):
                nn.init.uniform_(parameter, -bound, bound, generator=generator)
        elif isinstance(part, Encoder) and part.types is not None:
            nn.init.normal_(part.types, generator=generator)
