"""The best items of a whole catalogue by the compiled kernels, with the bounds that let them skip most items.

The bound of an item is the highest score that a user without pair features can give it, and a chunk of items has the
highest of theirs. An event changes the score of its item and raises the bound of one chunk. A new moment of the trend
changes the scores of all items, but nothing is computed again for that: bounds say how high scores can get by then, and
an item is scored anew when a query needs it (bounds.h).
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from felrec.abilities import Comparison, Found, Selection
from felrec.data.events import RowChange, Rows
from felrec.data.pending import Pending
from felrec.data.tables.growing import GrowingArray
from felrec.model.item_scores import moment_of
from felrec.model.kernels.native.comparing import compare
from felrec.model.kernels.native.item_network import PackedItemNetwork
from felrec.model.kernels.native.library import answer, library
from felrec.model.kernels.native.moving import MovingTables
from felrec.model.kernels.native.packing import Floats, Packer, encoder_weights, pair_biases
from felrec.model.kernels.native.state_view import follow_counts, follow_histories, follow_sequence, follow_trend
from felrec.model.kernels.native.tables import CHUNK, ITEM, ITEMS_CHUNK, NEVER_SCORED, Tables, address
from felrec.model.mlp_ensemble import MLPEnsemble
from felrec.model.signals.signal_set import SignalSet
from felrec.recommender import Queries

_SORTED = 1_024  # chunks for which it pays to sort them at every moment; with more it is done less often


class CompiledRanking:
    """All items with events. Several threads may call `best`, but not while another one calls `renew`."""

    def __init__(
        self, signals: SignalSet, item_network: MLPEnsemble | None, item_slopes: Tensor, pair_network: MLPEnsemble
    ) -> None:
        kernels = library()
        assert kernels is not None, "ask `library` first"
        self._kernels, self._signals, self._pair_network = kernels, signals, pair_network
        self._items, self._chunks = GrowingArray(ITEM, fill=NEVER_SCORED), GrowingArray(ITEMS_CHUNK)
        self._tops = GrowingArray(np.float32, (2,), fill=-np.inf)  # of each chunk, without and with the cosine
        self._order, self._moments = np.zeros(0, dtype=np.int32), 0  # moments since `order` was sorted
        self._rate_counts: Floats = np.zeros(0, dtype=np.float32)
        self._tables, self._moving, self._weights = Tables(), MovingTables(), Packer()
        self._address = ctypes.addressof(self._tables)
        self._item_network = PackedItemNetwork(self._tables.item_network, item_network, item_slopes, signals)
        self._follow_tables()
        self._pack_weights()
        self._tables.moment = moment_of(signals)
        self._look()
        kernels.felrec_renew_chunks(self._address)
        self._sort()

    def best(self, queries: Queries, selections: Sequence[Selection], hidden: Rows) -> list[Found]:
        """The best items for each query."""
        return answer(self._tables, queries, selections, hidden)

    def compare(self, queries: Queries, targets: Rows, leave_out: Pending, others: Rows) -> Comparison:
        """Compare the target of each query with all items that have events."""
        return compare(self._tables, queries, targets, leave_out, others)

    def renew(self, change: RowChange) -> None:
        """Follow a change that was applied to the signals."""
        is_new = moment_of(self._signals) != self._tables.moment
        if is_new:
            self._begin_moment()
        self._look()
        if is_new:
            self._kernels.felrec_new_moment(self._address)
        touched = self._signals.touched_items(change)
        self._kernels.felrec_renew_items(self._address, address(touched, "i4"), len(touched))
        if self._moments * _SORTED >= len(self._chunks):
            self._sort()

    def _follow_tables(self) -> None:
        signals, tables, moving = self._signals, self._tables, self._moving
        follow_histories(moving, tables.users, signals.recent.users)
        events = {"item_events": signals.recent.items.growing["count"]}
        moving.follow_columns(tables, events, {"item_events": "i8"}, "item_owners")
        follow_counts(moving, tables.own, signals.repetition, signals)
        follow_counts(moving, tables.near, signals.together, signals)
        follow_counts(moving, tables.next, signals.follows, signals)
        follow_counts(moving, tables.ahead, signals.ahead, signals)
        if signals.trend:
            follow_trend(moving, tables.item_network.trend, signals.trend)
        moving.follow_columns(tables, {"items": self._items}, {"items": ITEM}, "catalogue")
        moving.follow(tables, "chunks", ITEMS_CHUNK, self._chunks, "room")
        moving.follow(tables, "tops", "f4", self._tops, "room")
        if signals.sequence:
            follow_sequence(moving, tables.sequence, signals.sequence)
        moving.follow(tables, "order", "i4", self, "_order")

    def _pack_weights(self) -> None:
        vectors, tables = self._signals.vectors, self._tables
        with torch.no_grad():
            tables.network = self._weights.pair_network(self._pair_network, self._signals, self._log_features())
        tables.encoder = self._weights.encoder(vectors, encoder_weights(vectors))
        if vectors:
            tables.scale = vectors.network.log_scale.exp().item()
            tables.certain, tables.per_log_event = vectors.network.confidence.tolist()
        tables.sequence = self._weights.sequence(self._signals.sequence)

    def _begin_moment(self) -> None:
        """What changes with a new moment for all items alike: what the networks make of the log."""
        self._tables.moment, self._moments = moment_of(self._signals), self._moments + 1
        self._tables.drift += self._item_network.begin_moment()
        with torch.no_grad():
            self._pair_biases = pair_biases(self._pair_network, self._log_features())
        self._tables.network.first_bias = address(self._pair_biases, "f4")

    def _log_features(self) -> Tensor:
        profile = self._signals.profile
        return torch.from_numpy(profile.features) if profile else torch.zeros(0)

    def _look(self) -> None:
        """Have room for all items, and look where tables are: one that has grown may have moved."""
        vectors, rates, tables = self._signals.vectors, self._signals.hit_rates, self._tables
        self._grow()
        self._moving.look()
        if vectors:
            tables.encoder.vectors, tables.lengths = vectors.items.addresses
            tables.encoder.rows = len(vectors.items)
        if rates and not np.array_equal(rates.counts, self._rate_counts):  # most events change none of them
            self._rate_counts, self._rates = rates.counts.copy(), rates.by_cell
            tables.rates = address(self._rates, "f4")

    def _grow(self) -> None:
        """Items that are new have no bounds until they are renewed."""
        items, before = self._signals.recent.items.owners, len(self._chunks)
        self._items.grow(items)
        added = -(-items // CHUNK) - before
        if added > 0:
            new = (self._tables.moment, self._tables.drift, -np.inf)
            self._chunks.append(np.array([new] * added, dtype=ITEMS_CHUNK))
            self._tops.grow(before + added)
            self._order = np.append(np.arange(before, before + added, dtype=np.int32), self._order)

    def _sort(self) -> None:
        """Say where to look first. Between two sorts it may grow stale, which costs time but changes no answer."""
        self._order, self._moments = np.argsort(-self._tops.values.sum(axis=1)).astype(np.int32), 0
        self._moving.look()
