"""Item scores of a whole catalogue for the compiled kernels, with the bounds that let them skip most items.

The bound of an item is the highest score that a user without pair features can give it. An event changes the bound of
its item only; with a new moment of the trend all item scores change, and everything here is made anew.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from felrec.data.events import Rows
from felrec.model.item_scores import ItemScores
from felrec.model.kernels.native.library import answer
from felrec.model.kernels.native.packing import Packer, encoder_weights
from felrec.model.kernels.native.tables import CHUNK, ITEM, Tables
from felrec.model.mlp_ensemble import MLPEnsemble
from felrec.model.signals.signal_set import SignalSet
from felrec.recommender import Found, Queries, Selection

_SLACK = 1e-5  # relative: a bound must also hold for scores that were rounded on the way


class CompiledScores:
    """Answers with the kernels. Several threads may call `best`, but not while another one calls `renew`."""

    def __init__(self, scores: ItemScores, signals: SignalSet, pair_network: MLPEnsemble, log_features: Tensor) -> None:
        self._scores, self._signals = scores, signals
        count = len(scores.candidates)
        self._items = np.zeros(count, dtype=ITEM)
        self._upper = np.full((-(-count // CHUNK), CHUNK), -np.inf, dtype=np.float32)
        self._tops = np.full(len(self._upper), -np.inf, dtype=np.float32)
        self.renew(np.arange(count))
        self._order = np.argsort(-self._tops).astype(np.int32)  # may grow stale: it only says where to look first
        self._weights = Packer()
        with torch.no_grad():
            self._network = self._weights.pair_network(pair_network, signals, log_features)
        self._encoder = encoder_weights(signals.vectors)
        self._view: tuple[int, Tables, Packer] | None = None

    def renew(self, columns: NDArray[np.int64]) -> None:
        """Bring items up to date whose scores, events or vectors have changed."""
        scores, at = self._scores, torch.from_numpy(columns)
        events, log_events = scores.candidates.events[columns], scores.log_events[at]
        score, trust, reach = scores.scores[at, 0].numpy(), *np.zeros((2, len(columns)), dtype=np.float32)
        if vectors := self._signals.vectors:
            with torch.no_grad():
                trust = (vectors.network.log_scale.exp() * vectors.network.trust(log_events)).numpy()
            reach = trust * vectors.items.lengths(scores.candidates.rows[columns]).numpy()
        self._items["score"][columns], self._items["trust"][columns] = score, trust
        self._items["log_events"][columns], self._items["root_events"][columns] = log_events, 1 / np.sqrt(events + 1)
        upper = score + reach + _SLACK * (1 + np.abs(score) + reach)
        self._upper.reshape(-1)[columns] = np.where(events > 0, upper, -np.inf)
        chunks = np.unique(columns // CHUNK)
        self._tops[chunks] = self._upper[chunks].max(axis=1)

    def best(self, queries: Queries, selections: Sequence[Selection], hidden: Rows, version: int) -> list[Found]:
        """The best items for each query; `version` is another one after every change of the model's tables."""
        view = self._view
        if view is None or view[0] != version:
            packer = Packer()
            view = self._view = (version, self._tables(packer), packer)
        return answer(view[1], queries, selections, hidden)

    def _tables(self, packer: Packer) -> Tables:
        """What the kernels read; a table may have moved since, because it grew."""
        signals, items = self._signals, self._signals.recent.items.columns["count"]
        rates = signals.hit_rates
        return Tables(
            users=packer.histories(signals),
            item_events=packer.at(items, "i8"),
            item_owners=len(items),
            own=packer.counts(signals, signals.repetition),
            near=packer.counts(signals, signals.together, signals.together.reach if signals.together else 0),
            next=packer.counts(signals, signals.follows, signals.follows.reach if signals.follows else 0),
            rates=packer.at(rates.by_cell, "f4") if rates else None,
            network=self._network,
            encoder=packer.encoder(signals.vectors, self._encoder),
            catalogue=len(self._items),
            items=packer.at(self._items.view(np.float32), "f4"),
            upper=packer.at(self._upper, "f4"),
            tops=packer.at(self._tops, "f4"),
            order=packer.at(self._order, "i4"),
        )
