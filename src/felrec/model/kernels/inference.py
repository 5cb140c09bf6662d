"""Using a network without training it: no gradients and no dropout, whatever mode it is in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn


@contextmanager
def inference(module: nn.Module) -> Iterator[None]:
    """Evaluation mode without gradients; afterwards the module is in the mode that it was in.

    >>> dropout = nn.Dropout(0.9)
    >>> with inference(dropout):
    ...     dropout(torch.ones(4))
    tensor([1., 1., 1., 1.])
    >>> dropout.training
    True
    """
    was_training = module.training
    if was_training:  # changing the mode goes through all submodules: not for every request
        module.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        if was_training:
            module.train()
