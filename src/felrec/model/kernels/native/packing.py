"""Weights and tables of a FELRec-S in the layout that the kernels read."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray
from torch import Tensor, nn

from felrec.model.kernels.native import tables as native
from felrec.model.kernels.native.encoding import blocks_of, encoder_parts
from felrec.model.mlp_ensemble import MLPEnsemble
from felrec.model.paper.encoder import ITEM_SEQUENCE
from felrec.model.signals.item_links import ItemLinks
from felrec.model.signals.repetition import Repetition
from felrec.model.signals.sequence import Sequence
from felrec.model.signals.signal_set import SignalSet
from felrec.model.signals.vectors import SOFT, Vectors

Floats = NDArray[np.float32]
_FEATURES = 37  # as in tables.h, where every signal has its place


class Packer:
    """Addresses of arrays, which it keeps."""

    def __init__(self) -> None:
        self._kept: list[NDArray[Any]] = []

    def at(self, array: NDArray[Any], dtype: DTypeLike) -> int:
        """The address of an array."""
        self._kept.append(array)
        return native.address(array, dtype)

    def histories(self, signals: SignalSet) -> native.Histories:
        """The newest items of users."""
        users = signals.recent.users
        columns = users.columns
        return native.Histories(
            self.at(columns["ring"], "i4"), self.at(columns["count"], "i8"), users.owners, users.length
        )

    def counts(self, signals: SignalSet, signal: Repetition | ItemLinks | None, reach: int = 0) -> native.Counts:
        """The table of one signal."""
        if signal is None:
            return native.Counts(first_rate=-1)
        rates, rated, counts = signals.hit_rates, signals.rated, signal.counts
        rows = counts.rows
        return native.Counts(
            **{name: self.at(column.room, column.dtype) for name, column in rows.columns.items()},
            place=self.at(rows.place.room, "i8"),
            used=self.at(rows.used.room, "i4"),
            owners=counts.owners,
            size=counts.size,
            reach=reach,
            first_rate=int(rates.starts[rated.index(signal)]) if rates and signal in rated else -1,
        )

    def signals(self, signals: SignalSet) -> dict[str, Any]:
        """The entries of `Tables` that pairs are collected from; a table may move when it grows."""
        items, rates = signals.recent.items.columns["count"], signals.hit_rates
        return {
            "users": self.histories(signals),
            "item_events": self.at(items, "i8"),
            "item_owners": len(items),
            "own": self.counts(signals, signals.repetition),
            "near": self.counts(signals, signals.together, signals.together.reach if signals.together else 0),
            "next": self.counts(signals, signals.follows, signals.follows.reach if signals.follows else 0),
            "ahead": self.counts(signals, signals.ahead, signals.ahead.reach if signals.ahead else 0),
            "rates": self.at(rates.by_cell, "f4") if rates else None,
        }

    def pair_network(self, ensemble: MLPEnsemble, signals: SignalSet, log_features: Tensor) -> native.PairNetwork:
        """The weights of the pair network; what it adds for the features of the log becomes part of its bias."""
        first, second, last = zip(*(linear_layers(network) for network in ensemble.networks), strict=True)
        members, hidden, per_log = len(ensemble.networks), first[0].out_features, len(log_features)
        of_pairs = first[0].in_features - per_log
        weights = np.zeros((_FEATURES, members * hidden), dtype=np.float32)
        weights[feature_places(signals)] = _side_by_side([layer.weight[:, :of_pairs].T for layer in first])
        return native.PairNetwork(
            members,
            hidden,
            self.at(weights, "f4"),
            self.at(pair_biases(ensemble, log_features), "f4"),
            self.at(_flat([layer.weight.T for layer in second]), "f4"),
            self.at(_flat([layer.bias for layer in second]), "f4"),
            self.at(_flat([layer.weight[0] / members for layer in last]), "f4"),
            float(np.mean([layer.bias.item() for layer in last])),
        )

    def encoder(self, vectors: Vectors | None, weights: Floats) -> native.Encoder:
        """The encoder with its `encoder_weights`, and the vectors of items."""
        if vectors is None:
            return native.Encoder()
        items = vectors.items.vectors.numpy()
        return native.Encoder(
            *encoder_sizes(vectors),
            self.at(weights, "f4"),
            self.at(items, "f4"),
            len(items),
            vectors.items.side,
            SOFT,
        )

    def sequence(self, sequence: Sequence | None) -> native.Sequence:
        """The network that reads a sequence, and the vectors of items; these may move when they grow."""
        if sequence is None:
            return native.Sequence()
        network, vectors = sequence.network, sequence.vectors.room
        sizes = (network.width, network.size, network.heads, network.inner)
        return native.Sequence(
            *sizes, self.at(_flat(network.parts()), "f4"), self.at(vectors, "f4"), len(sequence.vectors)
        )


def feature_places(signals: SignalSet) -> NDArray[np.int64]:
    """Where tables.h has the inputs of the pair network, without those of the log."""
    of_signals = ((signals.repetition, 0, 9), (signals.together, 9, 16), (signals.follows, 16, 23))
    places = [np.arange(start, stop) for signal, start, stop in of_signals if signal]
    if signals.ahead:
        places.append(np.arange(29, 36))
    if signals.hit_rates:
        places.append(np.array([23 + nth for nth, (signal, _, _) in enumerate(of_signals) if signal]))
    return np.concatenate([*places, np.arange(26, 29), np.arange(36, 37 if signals.sequence else 36)])


def pair_biases(ensemble: MLPEnsemble, log_features: Tensor) -> Floats:
    """The first biases of the pair network, with what it adds for the features of the log."""
    layers = [linear_layers(network)[0] for network in ensemble.networks]
    of_pairs = layers[0].in_features - len(log_features)
    return _flat([layer.bias + layer.weight[:, of_pairs:] @ log_features for layer in layers])


def linear_layers(network: nn.Module) -> list[nn.Linear]:
    """The layers of a perceptron that have weights."""
    return [layer for layer in network.children() if isinstance(layer, nn.Linear)]


def encoder_sizes(vectors: Vectors) -> tuple[int, int, int, int]:
    """Width, heads, inner size and number of blocks."""
    blocks = blocks_of(vectors.network.encoder)
    return vectors.width, blocks[0].attention.heads, blocks[0].expand.out_features, len(blocks)


def encoder_weights(vectors: Vectors | None, kind: int = ITEM_SEQUENCE) -> Floats:
    """All weights of the encoder of a kind of histories, in the order of encoder.h; matrices as (inputs, outputs)."""
    return _flat(encoder_parts(vectors.network.encoder, kind)) if vectors else np.zeros(0, dtype=np.float32)


def _flat(parts: list[Tensor]) -> Floats:
    flat: Floats = torch.cat([part.detach().reshape(-1) for part in parts]).numpy()
    return flat


def _side_by_side(parts: list[Tensor]) -> Floats:
    joined: Floats = torch.cat([part.detach() for part in parts], dim=1).numpy()
    return joined
