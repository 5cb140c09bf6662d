"""Answers of a FELRec-S by the compiled kernels, which skip most items by their bounds (compiled_items.py)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from felrec.data.events import Rows
from felrec.data.pending import Pending
from felrec.model.item_scores import ItemScores
from felrec.model.kernels.native.comparing import compare
from felrec.model.kernels.native.library import answer
from felrec.model.kernels.native.packing import Packer, encoder_weights
from felrec.model.kernels.native.tables import Tables
from felrec.model.mlp_ensemble import MLPEnsemble
from felrec.model.signals.signal_set import SignalSet
from felrec.recommender import Comparison, Found, Queries, Selection


class CompiledScores:
    """The best items of a whole catalogue. Several threads may call `best`, but not while item scores are renewed."""

    def __init__(self, scores: ItemScores, signals: SignalSet, pair_network: MLPEnsemble, log_features: Tensor) -> None:
        assert scores.kernels is not None, "scores that torch computed have no bounds"
        self._signals = signals
        self._items, self._upper, self._tops = scores.kernels.bounds()
        self._order = np.argsort(-self._tops).astype(np.int32)  # may grow stale: it only says where to look first
        self._weights = Packer()
        with torch.no_grad():
            self._network = self._weights.pair_network(pair_network, signals, log_features)
        self._encoder = encoder_weights(signals.vectors)
        self._view: tuple[int, Tables, Packer] | None = None

    def best(self, queries: Queries, selections: Sequence[Selection], hidden: Rows, version: int) -> list[Found]:
        """The best items for each query; `version` is another one after every change of the model's tables."""
        return answer(self._tables_at(version), queries, selections, hidden)

    def compare(self, queries: Queries, targets: Rows, leave_out: Pending, others: Rows, version: int) -> Comparison:
        """Compare the target of each query with all items that have events."""
        return compare(self._tables_at(version), queries, targets, leave_out, others)

    def _tables_at(self, version: int) -> Tables:
        view = self._view
        if view is None or view[0] != version:
            packer = Packer()
            view = self._view = (version, self._tables(packer), packer)
        return view[1]

    def _tables(self, packer: Packer) -> Tables:
        """What the kernels read; a table may have moved since, because it grew."""
        return Tables(
            **packer.signals(self._signals),
            network=self._network,
            encoder=packer.encoder(self._signals.vectors, self._encoder),
            catalogue=len(self._items),
            items=packer.at(self._items.view(np.float32), "f4"),
            upper=packer.at(self._upper, "f4"),
            tops=packer.at(self._tops, "f4"),
            order=packer.at(self._order, "i4"),
        )
