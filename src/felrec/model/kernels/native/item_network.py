"""The item network in the layout that the kernels read, and how much its scores can change at most."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from felrec.data.tables.trend_counts import TREND_HALF_LIVES
from felrec.model.kernels.native import tables as native
from felrec.model.kernels.native.packing import linear_layers
from felrec.model.mlp_ensemble import MLPEnsemble
from felrec.model.signals.signal_set import SignalSet

Floats = NDArray[np.float32]
_FEATURES, _TRUSTED, _AGE = 10, 8, 9  # as in tables.h
_ROUND = 64  # hidden units are computed so many at a time


@dataclass(frozen=True)
class LogView:
    """What all items have in common at a moment."""

    features: Floats  # of the log
    trusted: Floats  # how far each half-life is trusted

    @classmethod
    def of(cls, signals: SignalSet) -> LogView:
        """As of the last moment."""
        if signals.profile is None:
            return cls(np.zeros(0, dtype=np.float32), np.zeros(len(TREND_HALF_LIVES), dtype=np.float32))
        return cls(signals.profile.features, signals.profile.horizon_weights)


class PackedItemNetwork:
    """Weights of the item network, and its steepest slopes, in a structure that the kernels read.

    A ReLU has a slope of 0 or 1. So the slope of the ensemble in one of its inputs is at most that of the units where
    it is positive, and at least that of the others.
    """

    def __init__(
        self, at: native.ItemNetwork, ensemble: MLPEnsemble | None, slopes: Tensor, signals: SignalSet
    ) -> None:
        self._at, self._signals = at, signals
        self._of_items = len(signals.trend.names) if signals.trend else 0
        layers = [linear_layers(network) for network in ensemble.networks] if ensemble else []
        inputs = self._of_items + len(signals.log_names)
        with torch.no_grad():
            first = np.concatenate([np.zeros((0, inputs)), *(layer.weight.numpy() for layer, _ in layers)])
            last = np.concatenate([np.zeros(0), *(layer.weight[0].numpy() / len(layers) for _, layer in layers)])
            bias = np.concatenate([np.zeros(0), *(layer.bias.numpy() for layer, _ in layers)])
            linear = np.zeros(inputs)
            linear[: len(slopes)] = slopes.numpy()
        by_unit = last[:, None] * first  # (units, inputs)
        self._if_rising = np.maximum(linear + np.maximum(by_unit, 0).sum(axis=0), 0)  # (inputs,) by one each
        self._if_falling = np.maximum(-linear - np.minimum(by_unit, 0).sum(axis=0), 0)
        of_inputs = _wide(first.T)
        self._of_log, self._bias = of_inputs[self._of_items :], _wide(bias)
        self._weights = [self._placed(of_inputs), _wide(last), self._placed(linear), self._placed(self._if_falling)]
        at.first, at.last, at.slopes, at.falls = (native.address(part, "f4") for part in self._weights)
        at.hidden = len(self._bias)
        at.last_bias = float(np.mean([layer.bias.item() for _, layer in layers])) if layers else 0.0
        at.rise_of_age = float(self._placed(self._if_rising)[_AGE])
        self._look()

    def begin_moment(self) -> float:
        """Look at the log anew; by how much a score may have risen because of it, its item's counts being the same."""
        before = self._log
        self._look()
        return self._drift(before, self._log)

    def _look(self) -> None:
        """What the network adds for the features of the log is part of its biases."""
        self._log = log = LogView.of(self._signals)
        self._biases = self._bias + log.features @ self._of_log
        self._at.bias, self._at.horizons = native.address(self._biases, "f4"), native.address(log.trusted, "f4")

    def _placed(self, by_input: NDArray[np.floating]) -> Floats:
        """Values by input (inputs, …) where tables.h has the features of items; zero for those that the model lacks."""
        placed = np.zeros((_FEATURES, *by_input.shape[1:]), dtype=np.float32)
        places = [place for place in range(_FEATURES) if place != _TRUSTED or self._of_items == _FEATURES]
        if self._of_items:
            placed[places] = by_input[: self._of_items]
        return placed

    def _drift(self, before: LogView, after: LogView) -> float:
        if not len(after.features):
            return 0.0
        change = (after.features - before.features).astype(np.float64)
        of_log = np.where(change > 0, self._if_rising[self._of_items :], -self._if_falling[self._of_items :]) @ change
        # The trusted share is half of a logarithm: its rise is at most half of that of the most increased weight.
        trusted = np.log(after.trusted.astype(np.float64) / before.trusted).max() / 2
        return float(of_log + self._if_rising[_TRUSTED] * max(0.0, trusted))


def _wide(by_unit: NDArray[np.float64]) -> Floats:
    """With units of zero up to a round number."""
    units = by_unit.shape[-1]
    wide = np.zeros((*by_unit.shape[:-1], -(-units // _ROUND) * _ROUND), dtype=np.float32)
    wide[..., :units] = by_unit
    return wide
