"""Projection and prediction networks: training compares their outputs, and so may scoring."""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn

Normalisation = Literal["batch", "layer"]
Projection = Literal["mlp", "none", "residual"]


def mlp(inputs: int, hidden: int, outputs: int, normalisation: Normalisation) -> nn.Sequential:
    """Linear, normalisation, ReLU, linear."""
    norm: nn.Module = nn.BatchNorm1d(hidden) if normalisation == "batch" else nn.LayerNorm(hidden)
    return nn.Sequential(nn.Linear(inputs, hidden), norm, nn.ReLU(), nn.Linear(hidden, outputs))


class ResidualHead(nn.Module):
    """x + MLP(x), which begins as the identity."""

    def __init__(self, width: int, hidden: int, normalisation: Normalisation) -> None:
        super().__init__()
        self.change = mlp(width, hidden, width, normalisation)

    def forward(self, x: Tensor) -> Tensor:
        """(B, D) -> (B, D)."""
        changed: Tensor = x + self.change(x)
        return changed

    def start_as_identity(self) -> None:
        """Let the MLP begin at zero."""
        for parameter in self.change[-1].parameters():
            nn.init.zeros_(parameter)


def head(kind: Projection, inputs: int, hidden: int, outputs: int, normalisation: Normalisation) -> nn.Module:
    """A network from `inputs` to `outputs`, which must be equal unless it is an MLP."""
    if kind == "mlp":
        return mlp(inputs, hidden, outputs, normalisation)
    return ResidualHead(inputs, hidden, normalisation) if kind == "residual" else nn.Identity()
