"""Vectors of unit length, with a gradient also where a vector vanishes."""

from __future__ import annotations

import torch
from torch import Tensor

SOFT = 1e-3  # added to the squared length: the vector of an empty history is short, and points nowhere in particular


def direction(vectors: Tensor) -> Tensor:
    """Vectors (B, D) of about unit length; smooth where they vanish.

    >>> direction(torch.tensor([[3.0, 4.0], [0.0, 0.0]])).round(decimals=3).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    return vectors * torch.rsqrt(vectors.square().sum(dim=1, keepdim=True) + SOFT)
