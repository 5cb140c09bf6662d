"""An ensemble of independently initialised MLPs.

The quality of a single small network on a log that it was not trained on varies by chance: hit rates of the same
recipe differed by a fifth. So several networks are trained, and their outputs are averaged.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812


class MLPEnsemble(nn.Module):
    """MLPs with the same inputs and one output each, which is zero before training.

    >>> MLPEnsemble(3, 5, 4)(torch.ones(2, 5)).tolist()
    [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """

    def __init__(self, count: int, inputs: int, *hidden: int) -> None:
        super().__init__()
        self.networks = nn.ModuleList(_perceptron(inputs, *hidden) for _ in range(count))

    def forward(self, features: Tensor, of_all: Tensor | None = None) -> Tensor:
        """Outputs (M, members) of features (M, F); features common to all rows are given once, as `of_all`."""
        if of_all is None:
            return torch.cat([network(features) for network in self.networks], dim=1)
        per_row = features.shape[1]
        outputs = []
        for network in self.networks:
            first, *rest = network.children()
            assert isinstance(first, nn.Linear)
            output = F.linear(features, first.weight[:, :per_row], first.bias + first.weight[:, per_row:] @ of_all)
            for layer in rest:
                output = layer(output)
            outputs.append(output)
        return torch.cat(outputs, dim=1)


def _perceptron(inputs: int, *hidden: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for size in hidden:
        layers += [nn.Linear(inputs, size), nn.ReLU()]
        inputs = size
    last = nn.Linear(inputs, 1)
    nn.init.zeros_(last.weight)
    nn.init.zeros_(last.bias)
    return nn.Sequential(*layers, last)
