"""The part of a FELRec-S score that is the same for every query: what the item network says of each candidate."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import torch
from torch import Tensor

from felrec.data.events import Rows
from felrec.model.compiled_items import CompiledItems
from felrec.model.mlp_ensemble import MLPEnsemble
from felrec.model.signals.pairs import Candidates
from felrec.model.signals.signal_set import SignalSet

# Items are scored in chunks of one shape: the last bits of a product depend on its number of rows, and what was kept
# and renewed in part must equal what is computed anew.
_CHUNK = 1024

ItemNetwork = Callable[[Tensor], Tensor]  # of features (M, F), scores (M, members)


class ItemScores:
    """Candidates and their scores, as of the last moment of the trend."""

    def __init__(self, rows: Rows, signals: SignalSet) -> None:
        self.candidates = Candidates.of(rows, signals.recent)
        self.log_events = torch.log1p(torch.from_numpy(self.candidates.events))  # (C,)
        self.features = torch.zeros(0)  # (C, F), if they are needed
        self.kernels: CompiledItems | None = None  # if they compute the scores
        self.scores = torch.zeros(len(rows), 1)  # (C, members of an ensemble that learns, or 1)
        self.lifts = torch.zeros(())  # (C,), or 0: what a loss takes from scores
        self._moment = moment_of(signals)

    @classmethod
    def computed(cls, rows: Rows, signals: SignalSet, network: ItemNetwork) -> ItemScores:
        """For scoring: the mean over the ensemble, in chunks."""
        scores = cls(rows, signals)
        scores.features = features_of(rows, signals)
        scores._compute(range(0, len(rows), _CHUNK), network)
        return scores

    @classmethod
    def compiled_from(cls, rows: Rows, signals: SignalSet, network: MLPEnsemble | None, slopes: Tensor) -> ItemScores:
        """For scoring, by the compiled kernels."""
        scores = cls(np.ascontiguousarray(rows, dtype=np.int32), signals)
        scores.kernels = CompiledItems(scores.candidates, scores.log_events, scores.scores, signals, network, slopes)
        return scores

    @classmethod
    def learning(cls, rows: Rows, signals: SignalSet, network: ItemNetwork, lifts: Tensor | None = None) -> ItemScores:
        """For training: every member of the ensemble apart, with gradients, less by `lifts` (C,).

        So the network learns scores that are higher by these.
        """
        scores = cls(rows, signals)
        scores.features = features_of(rows, signals)
        scores.scores = network(scores.features)
        if lifts is not None:
            scores.lifts, scores.scores = lifts, scores.scores - lifts[:, None]
        return scores

    @property
    def served(self) -> Tensor:
        """The scores (C,) as answers have them, without gradients: the pair network reads these."""
        return self.scores.detach().float().mean(dim=1) + self.lifts

    def renew(self, touched: Rows, signals: SignalSet, network: ItemNetwork) -> bool:
        """Look up again what events have touched since; False if a new moment has changed all items."""
        if self._moment != moment_of(signals):
            return False
        if self.kernels:
            self.kernels.renew(touched)
            return True
        columns = self.candidates.columns(touched)
        items, columns = touched[columns >= 0], columns[columns >= 0]
        at = torch.from_numpy(columns)
        self.candidates.events[columns] = signals.recent.items.counts(items)
        self.log_events[at] = torch.log1p(torch.from_numpy(self.candidates.events[columns]))
        self.features[at] = features_of(items, signals)
        self._compute(np.unique(columns // _CHUNK * _CHUNK).tolist(), network)
        return True

    def _compute(self, starts: Iterable[int], network: ItemNetwork) -> None:
        for start in starts:
            chunk = self.features[start : start + _CHUNK]
            padding = chunk.new_zeros(_CHUNK - len(chunk), chunk.shape[1])
            scores = network(torch.cat([chunk, padding]))[: len(chunk)]
            self.scores[start : start + _CHUNK] = scores.mean(dim=1, keepdim=True)


def features_of(items: Rows, signals: SignalSet) -> Tensor:
    """The features (C, F) of items, without those of the log."""
    return torch.from_numpy(signals.trend.item_features(items)) if signals.trend else torch.zeros(len(items), 0)


def moment_of(signals: SignalSet) -> int:
    """The moment as of which counts are read."""
    return signals.trend.counts.moment if signals.trend else 0
