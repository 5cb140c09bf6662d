"""Projection and prediction networks, used only in training."""

from __future__ import annotations

from typing import Literal

from torch import nn

Normalisation = Literal["batch", "layer"]


def mlp(inputs: int, hidden: int, outputs: int, normalisation: Normalisation) -> nn.Sequential:
    """Linear, normalisation, ReLU, linear."""
    norm: nn.Module = nn.BatchNorm1d(hidden) if normalisation == "batch" else nn.LayerNorm(hidden)
    return nn.Sequential(nn.Linear(inputs, hidden), norm, nn.ReLU(), nn.Linear(hidden, outputs))
