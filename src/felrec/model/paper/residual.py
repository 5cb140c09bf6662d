"""An encoder that starts as the mean of a history: before training it is already collaborative filtering.

With seeded caches the mean of a history says which items a user had. A network with random weights would first have to
learn to pass that on, and a log of 100,000 events has only a few hundred steps an epoch.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from felrec.model.kernels.dropout import Masks
from felrec.model.paper.encoder import Encoder
from felrec.model.paper.heads import ResidualHead

_TYPES = 0.02  # standard deviation of type vectors; the published 1 makes them 8 times as long as vectors of width 64


class ResidualEncoder(Encoder):
    """The published encoder plus the mean of the cached vectors."""

    def forward(self, vectors: Tensor, mask: Tensor, kind: int, dropout: Masks | None = None) -> Tensor:
        """Encode vectors (B, N, D) with mask (B, N) as (B, D)."""
        present = vectors.any(dim=2).sum(dim=1, keepdim=True)  # padding and the empty slot are zero
        mean = vectors.sum(dim=1) / present.clamp(min=1)
        return mean + super().forward(vectors, mask, kind, dropout)

    def start_as_mean(self) -> None:
        """Let the published part begin at zero, with type vectors that do not drown vectors of unit length."""
        for parameter in self.output.parameters():
            nn.init.zeros_(parameter)
        if self.types is not None:
            with torch.no_grad():
                self.types.mul_(_TYPES)


def start_as_identity(module: nn.Module) -> None:
    """Set the initial weights of all residual parts of a model, after its other weights were drawn."""
    for part in module.modules():
        if isinstance(part, ResidualEncoder):
            part.start_as_mean()
        elif isinstance(part, ResidualHead):
            part.start_as_identity()
