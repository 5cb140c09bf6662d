"""Item scores of a FELRec-S by the compiled kernels: counts in, scores out, without a table of features."""

from __future__ import annotations

import ctypes

from torch import Tensor

from felrec.data.events import Rows
from felrec.model.kernels.native.item_network import PackedItemNetwork
from felrec.model.kernels.native.item_tables import KeptItems
from felrec.model.kernels.native.library import library
from felrec.model.kernels.native.moving import MovingTables
from felrec.model.kernels.native.state_view import follow_trend
from felrec.model.kernels.native.tables import address
from felrec.model.mlp_ensemble import MLPEnsemble
from felrec.model.signals.pairs import Candidates
from felrec.model.signals.signal_set import SignalSet


class CompiledItems:
    """Keeps events and scores of candidates up to date, in arrays that others read.

    Weights, and what the log's profile shows, are those of its creation: it is made anew at every moment of the trend.
    """

    def __init__(
        self,
        candidates: Candidates,
        log_events: Tensor,
        scores: Tensor,
        signals: SignalSet,
        network: MLPEnsemble | None,
        slopes: Tensor,
    ) -> None:
        kernels = library()
        assert kernels is not None, "ask `library` first"
        self._kernels = kernels
        self._used = candidates, log_events, scores  # whose addresses the kernels have
        self._kept = KeptItems(
            known=len(candidates.column_of),
            column_of=address(candidates.column_of, "i8"),
            events=address(candidates.events, "f4"),
            log_events=address(log_events.numpy(), "f4"),
            scores=address(scores.numpy(), "f4"),
        )
        self._network = PackedItemNetwork(self._kept.network, network, slopes, signals)
        self._tables = MovingTables()
        events = {"item_events": signals.recent.items.growing["count"]}
        self._tables.follow_columns(self._kept, events, {"item_events": "i8"}, "item_owners")
        if signals.trend:
            follow_trend(self._tables, self._kept.network.trend, signals.trend)
        self.renew(candidates.rows)

    def renew(self, rows: Rows) -> None:
        """Bring candidates up to date, of which events have changed."""
        self._tables.look()
        self._kernels.felrec_score_items(ctypes.addressof(self._kept), address(rows, "i4"), len(rows))
