"""Notices that weights have changed, for those who keep something that was computed from them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import Tensor
from torch.optim.optimizer import register_optimizer_step_post_hook

_steps = 0  # of all optimisers


def weight_version(parameters: Iterable[Tensor]) -> tuple[int, int]:
    """Another value after any operation in place, and after any step of an optimiser.

    >>> import torch
    >>> weight = torch.nn.Parameter(torch.ones(3))
    >>> before = weight_version([weight])
    >>> weight.sum().backward()
    >>> torch.optim.AdamW([weight], fused=True).step()  # which torch does not count as an operation in place
    >>> weight_version([weight]) == before
    False
    """
    return _steps, sum(parameter._version for parameter in parameters)


def _count(*_: Any) -> None:
    global _steps
    _steps += 1


register_optimizer_step_post_hook(_count)
