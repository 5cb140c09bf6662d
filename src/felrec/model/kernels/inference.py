"""Use a network without gradients and dropout."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn


@contextmanager
def inference(module: nn.Module) -> Iterator[None]:
    """Evaluation mode without gradients; the previous mode is restored afterwards.

    >>> dropout = nn.Dropout(0.9)
    >>> with inference(dropout):
    ...     dropout(torch.ones(4))
    tensor([1., 1., 1., 1.])
    >>> dropout.training
    True
    """
    was_training = module.training
    if was_training:  # changing the mode visits all submodules, which is too slow for every request
        module.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        if was_training:
            module.train()
