"""The signals of one model, built from the list in its settings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, get_args

import torch

from felrec.abilities import ErasureContext
from felrec.data.events import Events, RowChange, Rows
from felrec.data.tables.table import RowsByTable, TableState
from felrec.model.signals.ahead import Ahead
from felrec.model.signals.follows import Follows
from felrec.model.signals.hit_rates import HitRates
from felrec.model.signals.profile import LogProfile
from felrec.model.signals.recent import RecentEvents
from felrec.model.signals.repetition import Repetition
from felrec.model.signals.sequence import Sequence
from felrec.model.signals.sequence_network import SequenceNetwork
from felrec.model.signals.signal import PairSignal, Signal
from felrec.model.signals.together import Together
from felrec.model.signals.trend import Trend
from felrec.model.signals.vectors import VectorNetwork, Vectors
from felrec.recommender import Tensors

SignalName = Literal[
    "trend", "repetition", "together", "follows", "ahead", "sequence", "vectors", "profile", "hit-rates"
]
SIGNALS: tuple[SignalName, ...] = get_args(SignalName)
NEED_TREND = ("sequence", "profile", "hit-rates")


class SignalSet:
    """Signals by name, None where one is left out; together they are the state of a model."""

    def __init__(
        self,
        names: list[SignalName],
        history_length: int,
        sizes: dict[str, int],  # how many items the tables of pair signals keep in a row
        sequence: SequenceNetwork | None,
        vectors: VectorNetwork | None,
        width: int,
        device: torch.device,
    ) -> None:
        self.recent = recent = RecentEvents(history_length)
        self.trend = Trend(recent) if "trend" in names else None
        self.repetition = Repetition(sizes["repetition"], recent) if "repetition" in names else None
        self.together = Together(sizes["together"], recent) if "together" in names else None
        self.follows = Follows(sizes["follows"], recent) if "follows" in names else None
        self.ahead = Ahead(sizes["ahead"], recent) if "ahead" in names else None
        self.sequence = Sequence(sequence, recent, self.trend) if sequence and self.trend else None
        self.vectors = Vectors(vectors, width, recent, device) if vectors else None
        self.profile = self.hit_rates = None
        if self.trend and "profile" in names:
            self.profile = self.trend.profile = LogProfile(recent, self.trend, self.repetition, self.together)
        if self.trend and "hit-rates" in names:
            self.hit_rates = HitRates(self.rated, recent, self.trend)

    @property
    def of_pairs(self) -> list[PairSignal]:
        """Those that speak for pairs of a user and an item."""
        return self.rated + ([self.ahead] if self.ahead else [])

    @property
    def rated(self) -> list[PairSignal]:
        """Those of them that have hit rates, in the order of `of_pairs`."""
        signals: list[PairSignal | None] = [self.repetition, self.together, self.follows]
        return [signal for signal in signals if signal]

    def pair_signal(self, name: SignalName | None) -> PairSignal | None:
        """The signal of that name, if it speaks for pairs."""
        by_name: dict[str | None, PairSignal | None] = {
            "repetition": self.repetition,
            "together": self.together,
            "follows": self.follows,
            "ahead": self.ahead,
        }
        return by_name.get(name)

    def __iter__(self) -> Iterator[Signal | RecentEvents]:
        yield self.recent
        of_log: list[Signal | None] = [self.profile, self.hit_rates]
        signals = [self.trend, *self.of_pairs, *of_log, self.sequence, self.vectors]
        yield from (signal for signal in signals if signal)

    @property
    def item_names(self) -> tuple[str, ...]:
        """Features that the item network reads."""
        return self.trend.names + self.log_names if self.trend else ()

    @property
    def pair_names(self) -> tuple[str, ...]:
        """Features of signals that the pair network reads."""
        rates = self.hit_rates.names if self.hit_rates else ()
        return tuple(name for signal in self.of_pairs for name in signal.names) + rates

    @property
    def log_names(self) -> tuple[str, ...]:
        """Features of the log, which both networks read."""
        return self.profile.names if self.profile else ()

    def change(self, events: Events) -> RowChange:
        """The rows that a block of events changes. Reads only."""
        block = self.recent.block(events)
        return _joined(signal.change(block) for signal in self)

    def forget(self, user: int, context: ErasureContext) -> RowChange:
        """The rows that dropping a user changes. Reads only."""
        return _joined(signal.forget(user, context) for signal in self)

    def apply_change(self, change: RowChange) -> None:
        """Copy the rows of a change."""
        for signal in self:
            signal.apply_change(change)

    def touched_items(self, change: RowChange) -> Rows:
        """The items whose features a change has changed, apart from what a new moment changes for all of them."""
        return self.trend.touched(change) if self.trend else change["item_count"][0]

    def clear(self) -> None:
        """Forget all events."""
        for signal in self:
            signal.clear()

    def view(self) -> RowsByTable:
        """All rows, without a copy."""
        return {name: rows for signal in self for name, rows in signal.view().items()}

    def state(self) -> Tensors:
        """A copy of all rows."""
        return {name: torch.from_numpy(rows) for signal in self for name, rows in signal.state().items()}

    def load_state(self, state: Tensors) -> None:
        """Restore what `state` returned."""
        self.load_rows({name: rows.numpy() for name, rows in state.items()})

    def load_rows(self, state: TableState) -> None:
        """The same from arrays, or from rows that become arrays when they are copied: lists never do as a whole."""
        for signal in self:
            signal.load_state(state)


def _joined(changes: Iterator[RowChange]) -> RowChange:
    return {name: rows for change in changes for name, rows in change.items()}
