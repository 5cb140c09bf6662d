"""The optimisers, and their state as plain tensors for a checkpoint without pickle."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn

from felrec.config import TrainingSettings
from felrec.recommender import Tensors


def build_optimiser(parameters: Iterable[nn.Parameter], settings: TrainingSettings) -> torch.optim.Optimizer:
    """SGD with momentum as in the paper, or AdamW."""
    if settings.optimizer == "adamw":
        return torch.optim.AdamW(parameters, lr=settings.lr, weight_decay=settings.weight_decay, fused=True)
    return torch.optim.SGD(parameters, lr=settings.lr, momentum=settings.momentum, weight_decay=settings.weight_decay)


def optimiser_state(optimiser: torch.optim.Optimizer) -> Tensors:
    """Momenta and counters, named by parameter index and kind."""
    state = optimiser.state_dict()["state"]
    return {
        f"{index}.{kind}": value.detach().cpu().clone()
        for index, entry in state.items()
        for kind, value in entry.items()
        if isinstance(value, torch.Tensor)
    }


def load_optimiser_state(optimiser: torch.optim.Optimizer, tensors: Tensors) -> None:
    """Restore what `optimiser_state` returned."""
    state: dict[int, Tensors] = {}
    for name, tensor in tensors.items():
        index, kind = name.split(".", 1)
        state.setdefault(int(index), {})[kind] = tensor
    optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})
