"""Small networks that learn apart and are heard together.

On a log it was not trained on a small network is a matter of luck: the same recipe gave hit rates that differ by a
fifth. So several learn the same from different beginnings, and their mean is taken.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812


class MLPEnsemble(nn.Module):
    """Perceptrons with the same inputs and one output each, which say nothing before they are trained.

    >>> MLPEnsemble(3, 5, 4)(torch.ones(2, 5)).tolist()
    [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """

    def __init__(self, count: int, inputs: int, *hidden: int) -> None:
        super().__init__()
        self.networks = nn.ModuleList(_perceptron(inputs, *hidden) for _ in range(count))

    def forward(self, features: Tensor, of_all: Tensor | None = None) -> Tensor:
        """Outputs (M, members) of features (M, F); what is the same for all rows may be given once, beside them."""
        if of_all is None:
            return torch.cat([network(features) for network in self.networks], dim=1)
        told = features.shape[1]
        outputs = []
        for network in self.networks:
            first, *rest = network.children()
            assert isinstance(first, nn.Linear)
            output = F.linear(features, first.weight[:, :told], first.bias + first.weight[:, told:] @ of_all)
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
