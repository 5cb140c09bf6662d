"""Online adaptation: a gradient step on the parameters per observed block, which can be undone."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from felrec.recommender import Tensors

_CLIP = 1.0  # limit of every gradient value, as in training
_MOMENTS = ("step", "exp_avg", "exp_avg_sq")  # Adam's state of a parameter


class Adaptation:
    """Adam steps on the parameters of a module; the trained values are kept separately.

    >>> module = nn.Linear(1, 1, bias=False)
    >>> adaptation, before = Adaptation(module, lr=0.1), module.weight.item()
    >>> adaptation.step(module(torch.ones(1, 1)).sum())
    >>> module.weight.item() < before, adaptation.trained()["weight"].item() == before
    (True, True)
    >>> adaptation.undo()
    >>> module.weight.item() == before
    True
    """

    def __init__(self, module: nn.Module, lr: float) -> None:
        self.module, self.lr = module, lr
        self._trained: Tensors | None = None  # None: nothing was adapted yet
        self._optimiser: torch.optim.Adam | None = None

    def step(self, loss: Tensor) -> None:
        """Take one optimiser step on a loss."""
        optimiser = self._begin()
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_value_(self.module.parameters(), _CLIP)
        optimiser.step()
        optimiser.zero_grad()

    def trained(self) -> Tensors:
        """A copy of the parameters before adaptation."""
        source = self._trained or dict(self.module.named_parameters())
        return {name: parameter.detach().cpu().clone() for name, parameter in source.items()}

    def load_trained(self, weights: Tensors) -> None:
        """Restore what `trained` returned."""
        self._write(weights)
        self._trained = self._optimiser = None

    def undo(self) -> None:
        """Restore the trained parameters."""
        if self._trained is not None:
            self.load_trained(self._trained)

    def state(self) -> Tensors:
        """A copy of the adapted parameters and of Adam's moments; empty if nothing was adapted."""
        if self._optimiser is None:
            return {}
        memory = self._optimiser.state
        tensors = {f"adapted.{name}": parameter for name, parameter in self.module.named_parameters()}
        for name, parameter in self.module.named_parameters():
            tensors |= {f"{moment}.{name}": memory[parameter][moment] for moment in _MOMENTS if memory[parameter]}
        return {name: tensor.detach().cpu().clone() for name, tensor in tensors.items()}

    def load_state(self, state: Tensors) -> None:
        """Restore what `state` returned; other entries of `state` are ignored."""
        self.undo()
        adapted = {name.removeprefix("adapted."): t for name, t in state.items() if name.startswith("adapted.")}
        if not adapted:
            return
        memory = self._begin().state
        self._write(adapted)
        for name, parameter in self.module.named_parameters():
            if f"step.{name}" in state:
                moments = {moment: state[f"{moment}.{name}"].clone() for moment in _MOMENTS}
                memory[parameter] = {moment: tensor.to(parameter.device) for moment, tensor in moments.items()}

    def _begin(self) -> torch.optim.Adam:
        if self._optimiser is None:
            self._trained = self.trained()
            self._optimiser = torch.optim.Adam(self.module.parameters(), lr=self.lr, fused=True)
        return self._optimiser

    def _write(self, weights: Tensors) -> None:
        with torch.no_grad():
            for name, parameter in self.module.named_parameters():
                parameter.copy_(weights[name])
