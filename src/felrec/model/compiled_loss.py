"""The softmax over the whole catalogue with its gradients, by the compiled kernels instead of torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from felrec.data.events import Rows
from felrec.model.item_scores import ItemScores
from felrec.model.kernels.native import tables as native
from felrec.model.kernels.native.learning import Gradients, Inputs, learn
from felrec.model.kernels.native.packing import Packer, feature_places, linear_layers
from felrec.model.mlp_ensemble import MLPEnsemble
from felrec.model.signals.signal_set import SignalSet
from felrec.peers import ALONE, Peers
from felrec.recommender import Queries

LEAST_SHARE = 0.005
"""Pairs with a smaller share of a softmax are sampled for the backward pass; the gradients stay unbiased.

With 0 all are computed: a training takes half as long again and is no better (docs/performance.md).
"""


class CompiledLoss:
    """The loss of queries about all items of a catalogue (rows 0, 1, 2, …), each of which has events."""

    def __init__(
        self,
        signals: SignalSet,
        items: ItemScores,
        pair_network: MLPEnsemble,
        log_features: Tensor,
        peers: Peers = ALONE,
    ) -> None:
        self._signals, self._items, self._log_features, self._peers = signals, items, log_features, peers
        self._layers = [linear_layers(network) for network in pair_network.networks]
        self._packer, self._pair_network = Packer(), pair_network

    def __call__(self, queries: Queries, targets: Rows) -> Tensor:
        """The mean over queries and members of the ensemble; differentiable."""
        vectors, items = self._signals.vectors, self._items
        users, log_trust = torch.zeros(len(queries), 0), torch.zeros(len(items.candidates))
        if vectors:
            users = vectors.scaled_users(queries, self._peers)
            log_trust = vectors.network.log_trust(items.log_events)
        parameters = [parameter for layers in self._layers for layer in layers for parameter in layer.parameters()]
        sequence = self._signals.sequence
        wanted = sequence.wanted(queries) if sequence else torch.zeros(len(queries), 0)
        dense = (users.float(), wanted.float(), items.scores.float(), log_trust.float())
        loss: Tensor = _Loss.apply(self, queries, targets, *dense, *parameters)  # type: ignore[no-untyped-call]
        return loss

    def gradients(
        self, queries: Queries, targets: Rows, users: Tensor, wanted: Tensor, scores: Tensor, log_trust: Tensor
    ) -> Gradients:
        """The loss and all gradients."""
        last, second = [layers[2] for layers in self._layers], [layers[1] for layers in self._layers]
        inputs = Inputs(
            users.numpy(),
            np.ascontiguousarray(wanted.numpy()),
            targets,
            np.ascontiguousarray(scores.numpy().T),
            torch.cat([layer.bias for layer in last]).numpy(),
            torch.stack([layer.weight for layer in second]).numpy(),
            LEAST_SHARE,
        )
        return learn(self._tables(log_trust.exp()), queries, inputs, self._peers)

    def _tables(self, trust: Tensor) -> native.Tables:
        signals, items, packer = self._signals, self._items, self._packer
        kept = np.zeros(len(items.candidates), dtype=native.ITEM)
        kept["score"], kept["trust"], kept["log_events"] = items.served, trust, items.log_events
        kept["root_events"] = 1 / np.sqrt(items.candidates.events + 1)
        network = packer.pair_network(self._pair_network, signals, self._log_features)
        network.last = packer.at(torch.cat([layers[2].weight[0] for layers in self._layers]).numpy(), "f4")
        return native.Tables(
            **packer.signals(signals),
            network=network,
            encoder=packer.encoder(signals.vectors, np.zeros(0, dtype=np.float32)),
            sequence=packer.sequence(signals.sequence),
            catalogue=len(kept),
            items=packer.at(kept, native.ITEM),
        )

    def of_parameters(self, found: Gradients) -> list[Tensor]:
        """Gradients of the weights and biases of the pair network, layer by layer of each member."""
        gradients, places, log = [], feature_places(self._signals), self._log_features.numpy()
        hidden = found.last.shape[1]
        for member in range(len(self._layers)):
            first = found.first[places, member * hidden : (member + 1) * hidden].T
            bias = found.first_bias[member]
            gradients += [np.concatenate([first, np.outer(bias, log)], axis=1), bias]
            gradients += [found.second[member].T, found.second_bias[member]]
            gradients += [found.last[member][None], found.last_bias[member : member + 1]]
        return [torch.from_numpy(np.ascontiguousarray(gradient)) for gradient in gradients]


class _Loss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, loss: CompiledLoss, queries: Queries, targets: Rows, *tensors: Tensor) -> Tensor:
        users, wanted, scores, log_trust, *_ = (tensor.detach() for tensor in tensors)
        found = loss.gradients(queries, targets, users, wanted, scores, log_trust)
        dense = (found.users, found.wanted, np.ascontiguousarray(found.items.T), found.log_trust)
        ctx.save_for_backward(*map(torch.from_numpy, dense), *loss.of_parameters(found))
        return torch.tensor(found.losses.sum(dtype=np.float64), dtype=torch.float32)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        return None, None, None, *(saved * gradients[0] for saved in ctx.saved_tensors)
