"""The state of a FELRec-S as the event kernels see it."""

from __future__ import annotations

import ctypes

import torch

from felrec.data.tables.histories import Histories
from felrec.model.kernels.native import tables as native
from felrec.model.kernels.native.event_tables import State
from felrec.model.kernels.native.moving import MovingTables
from felrec.model.kernels.native.packing import encoder_sizes, encoder_weights
from felrec.model.kernels.native.tables import Counts, Encoder, address
from felrec.model.kernels.weight_version import weight_version
from felrec.model.paper.encoder import ITEM_SEQUENCE, USER_SEQUENCE
from felrec.model.signals.item_links import ItemLinks
from felrec.model.signals.repetition import Repetition
from felrec.model.signals.seeds import SeededCache
from felrec.model.signals.sequence import Sequence
from felrec.model.signals.signal_set import SignalSet
from felrec.model.signals.trend import Trend
from felrec.model.signals.vectors import SOFT, Vectors

_OF_HISTORIES = {"ring": "i4", "count": "i8"}
_OF_TREND = {"mass": "f4", "last": "i8", "first": "i8"}


class StateView:
    """Addresses of all tables and weights; `current` looks up again what has moved."""

    def __init__(self, signals: SignalSet) -> None:
        self._signals, self._state = signals, State()
        self._tables = tables = MovingTables()
        state, recent = self._state, signals.recent
        for histories, of in ((recent.users, state.users), (recent.items, state.items)):
            follow_histories(tables, of, histories)
        if signals.trend:
            follow_trend(tables, state.trend, signals.trend)
        follow_counts(tables, state.own, signals.repetition, signals)
        follow_counts(tables, state.near, signals.together, signals)
        follow_counts(tables, state.next, signals.follows, signals)
        follow_counts(tables, state.ahead, signals.ahead, signals)
        if signals.profile:
            tables.follow(state, "profile", "f4", signals.profile, "means")
        if signals.hit_rates:
            state.cells = signals.hit_rates.counts.shape[1]
            tables.follow(state, "rates", "f4", signals.hit_rates, "counts")
        if signals.sequence:
            follow_sequence(tables, state.sequence, signals.sequence)
            tables.follow(state, "masses", "f4", signals.sequence.masses, "room")
            tables.follow(state, "spread", "f4", signals.sequence, "spread")
            tables.follow(state, "whitening", "f4", signals.sequence, "whitening")
        self._encoders = _Encoders(signals.vectors, state) if signals.vectors else None

    def current(self) -> int:
        """The address of the state, valid until the next change."""
        self._tables.look()
        if self._signals.trend:
            self._state.trend.items = self._signals.trend.counts.items
        if self._encoders:
            self._encoders.look()
        return ctypes.addressof(self._state)


def follow_histories(tables: MovingTables, at: native.Histories, histories: Histories) -> None:
    """Let a structure follow the newest counterparts of owners."""
    at.length = histories.length
    tables.follow_columns(at, histories.growing, _OF_HISTORIES, "owners")


def follow_counts(tables: MovingTables, at: Counts, signal: Repetition | ItemLinks | None, signals: SignalSet) -> None:
    """Let a structure follow the counts of a signal of pairs."""
    rates, at.first_rate = signals.hit_rates, -1
    if signal is None:
        return
    at.size = signal.counts.size
    at.reach = signal.reach if isinstance(signal, ItemLinks) else 0
    if rates and signal in signals.rated:
        at.first_rate = int(rates.starts[signals.rated.index(signal)])
    tables.follow_packed(at, signal.counts.rows)


def follow_trend(tables: MovingTables, at: native.Trend, trend: Trend) -> None:
    """Let a structure follow the counts of a trend, but for the number of items."""
    tables.follow_columns(at, trend.counts.growing, _OF_TREND, "rows")
    tables.follow(at, "log", "i8", trend.counts, "log")


def follow_sequence(tables: MovingTables, at: native.Sequence, sequence: Sequence) -> None:
    """Let a structure follow the vectors of items."""
    at.width = sequence.network.width
    tables.follow_columns(at, {"vectors": sequence.vectors}, {"vectors": "f4"}, "rows")


class _Encoders:
    """The encoders of both sides, and their caches."""

    def __init__(self, vectors: Vectors, state: State) -> None:
        self._vectors, self._state = vectors, state
        self._parameters = list(vectors.network.parameters())
        self._version = (-1, -1)
        for encoder, cache in self._sides():
            sizes = encoder_sizes(vectors)
            encoder.width, encoder.heads, encoder.feed_forward, encoder.layers = sizes
            encoder.side, encoder.softness = cache.side, SOFT

    def look(self) -> None:
        """Look where vectors are, and pack the weights again if a training has changed them."""
        state, users, items = self._state, self._vectors.users, self._vectors.items
        state.of_items.vectors, state.user_lengths = users.addresses
        state.of_users.vectors, state.item_lengths = items.addresses
        state.of_items.rows, state.of_users.rows = len(users), len(items)
        version = weight_version(self._parameters)
        if version != self._version:
            self._pack()
            self._version = version

    def _pack(self) -> None:
        with torch.no_grad():
            self._weights = [encoder_weights(self._vectors, kind) for kind in (ITEM_SEQUENCE, USER_SEQUENCE)]
        for (encoder, _), weights in zip(self._sides(), self._weights, strict=True):
            encoder.weights = address(weights, "f4")
        self._state.seed_share = self._vectors.network.seed_share.item()

    def _sides(self) -> tuple[tuple[Encoder, SeededCache], tuple[Encoder, SeededCache]]:
        """The encoder of users reads the cache of items, and the other way round."""
        return (self._state.of_users, self._vectors.items), (self._state.of_items, self._vectors.users)
