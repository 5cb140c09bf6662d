"""Item scores of a FELRec-S by the compiled kernels: counts in, scores and bounds out, without a table of features.

The bound of an item is the highest score that a user without pair features can give it. The kernels that answer use
it to skip most items. An event changes the score and the bound of its item only.
"""

from __future__ import annotations

import ctypes

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from felrec.data.events import Rows
from felrec.model.kernels.native.item_tables import ItemNetwork, KeptItems
from felrec.model.kernels.native.library import library
from felrec.model.kernels.native.moving import MovingTables
from felrec.model.kernels.native.packing import item_weights
from felrec.model.kernels.native.state_view import follow_trend
from felrec.model.kernels.native.tables import CHUNK, ITEM, address
from felrec.model.mlp_ensemble import MLPEnsemble
from felrec.model.signals.pairs import Candidates
from felrec.model.signals.signal_set import SignalSet


class PackedItemNetwork:
    """The weights of an item network; what it adds for the features of the log is part of its biases."""

    def __init__(self, network: MLPEnsemble | None, slopes: Tensor, of_log: Tensor) -> None:
        self.structure = ItemNetwork()
        if network is None:  # then all scores are zero
            return
        self._weights, last_bias = item_weights(network, slopes, of_log)
        first, bias, last, all_slopes = self._weights
        self.structure = ItemNetwork(
            features=len(first),
            hidden=len(bias),
            first=address(first, "f4"),
            bias=address(bias, "f4"),
            last=address(last, "f4"),
            slopes=address(all_slopes, "f4"),
            last_bias=last_bias,
        )


class CompiledItems:
    """Keeps events, scores and bounds of candidates up to date, in arrays that others read.

    Weights, and what the log's profile shows, are those of its creation: it is made anew at every moment of the trend.
    """

    def __init__(
        self, candidates: Candidates, log_events: Tensor, scores: Tensor, signals: SignalSet, network: PackedItemNetwork
    ) -> None:
        kernels = library()
        assert kernels is not None, "ask `library` first"
        self._kernels, self._vectors, self._network = kernels, signals.vectors, network
        self._used = candidates, log_events, scores  # whose addresses the kernels have
        self._kept = KeptItems(
            count=len(candidates),
            known=len(candidates.column_of),
            column_of=address(candidates.column_of, "i8"),
            rows=address(candidates.rows, "i4"),
            events=address(candidates.events, "f4"),
            log_events=address(log_events.numpy(), "f4"),
            scores=address(scores.numpy(), "f4"),
        )
        self._tables = MovingTables()
        events = {"item_events": signals.recent.items.growing["count"]}
        self._tables.follow_columns(self._kept, events, {"item_events": "i8"}, "item_owners")
        if signals.trend:
            follow_trend(self._tables, network.structure.trend, signals.trend)
        if signals.profile:
            self._horizons = signals.profile.horizon_weights
            network.structure.horizons = address(self._horizons, "f4")
        if signals.vectors:
            weights = signals.vectors.network
            self._kept.scale = weights.log_scale.exp().item()
            self._kept.certain, self._kept.per_log_event = weights.confidence.tolist()
        self.renew(candidates.rows)

    def renew(self, rows: Rows) -> None:
        """Bring candidates up to date, of which events or vectors have changed."""
        kept, network = self._current(), ctypes.addressof(self._network.structure)
        if self._kernels.felrec_renew_items(network, kept, address(rows, "i4"), len(rows)):
            raise MemoryError(f"not enough memory to score {len(rows)} items")

    def bounds(self) -> tuple[NDArray[np.void], NDArray[np.float32], NDArray[np.float32]]:
        """What the answering kernels read of items, upper bounds (chunks, items), and the highest of each chunk.

        From now on they are kept up to date.
        """
        count = self._kept.count
        items = np.zeros(count, dtype=ITEM)
        upper = np.full((-(-count // CHUNK), CHUNK), -np.inf, dtype=np.float32)
        tops = np.full(len(upper), -np.inf, dtype=np.float32)
        self._kept.items = address(items.view(np.float32), "f4")
        self._kept.upper, self._kept.tops = address(upper, "f4"), address(tops, "f4")
        self._bounds = items, upper, tops
        self._kernels.felrec_bound_items(self._current())
        return self._bounds

    def _current(self) -> int:
        """The address of what is kept, with the addresses of tables that may have moved."""
        self._tables.look()
        if self._vectors:
            cache = self._vectors.items
            self._kept.lengths, self._kept.lengths_count = cache.addresses[1], len(cache)
        return ctypes.addressof(self._kept)
