"""Hit rates: the share of similar pairs of this log that became events.

The same features predict more on one log than on another. Weights that were trained on other logs use the observed hit
rate of each feature bucket on this log.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from felrec.abilities import ErasureContext
from felrec.data.events import RowChange, all_rows
from felrec.data.tables.table import TableState
from felrec.model.signals.pairs import Candidates, PairFeatures, collect
from felrec.model.signals.recent import BlockView, RecentEvents
from felrec.model.signals.signal import Floats, Ints, PairSignal
from felrec.model.signals.trend import Trend
from felrec.recommender import Queries

EVERY = 4  # one in this many events is sampled, which is enough
_TABLE = "rate_cells"
_HALF_LIFE = 10_000  # of the counts, in sampled events
_PRIOR = 100.0  # weight, in pairs, of the signal's overall rate in each of its buckets
_FAINT = 1e-5  # rates below this are treated as equal
_AT_ONCE = 1 << 24  # pairs of a query and a candidate processed at a time


class HitRates:
    """Decayed counts of pairs and of hits by bucket. Provides one feature per pair signal."""

    def __init__(self, signals: Sequence[PairSignal], recent: RecentEvents, trend: Trend) -> None:
        self._signals, self._recent, self._trend = signals, recent, trend
        sizes = [signal.bucket_count for signal in signals]
        self.starts = np.cumsum([0, *sizes[:-1]])
        self._signal_of = np.repeat(np.arange(len(sizes)), sizes)
        self.names = tuple(f"hit_rates.{signal.names[0].partition('.')[0]}" for signal in signals)
        self.clear()

    def clear(self) -> None:
        """Remove all counts."""
        self.counts = np.zeros((2, len(self._signal_of)), dtype=np.float32)  # hits, and all pairs

    def features(self, buckets: Ints) -> Floats:
        """Log hit rates (M, signals) of pairs by their buckets (M, signals); 0 where a signal has no bucket."""
        features: Floats = np.append(self.by_cell, np.float32(0))[self._cells(buckets)]
        return features

    @property
    def by_cell(self) -> Floats:
        """Log hit rates (cells,) of the buckets of all signals, one signal after another."""
        taken, pairs = self.counts
        of_signal = (np.bincount(self._signal_of, taken) + 0.01) / (np.bincount(self._signal_of, pairs) + 10)
        rate = (taken + _PRIOR * of_signal[self._signal_of]) / (pairs + _PRIOR)
        logarithms: Floats = (np.log(rate / _FAINT + 1) / 3).astype(np.float32)
        return logarithms

    def change(self, block: BlockView) -> RowChange:
        """The counts after a block: adds the pairs and hits of those of its sampled events that count."""
        events = np.arange(-self._trend.counts.events % EVERY, len(block), EVERY)
        events = events[block.events.counts[events]]
        if not len(events):
            return all_rows(self.state())
        everything = Candidates.of(np.arange(self._recent.items.owners, dtype=np.int32), self._recent)
        queries, at_once = Queries.before_each(block.events), max(1, _AT_ONCE // max(1, len(everything)))
        parts = [events[start : start + at_once] for start in range(0, len(events), at_once)]
        found = [self._found(queries[part], everything) for part in parts]
        hits = [
            one.pairs.column == block.events.items[part][one.pairs.query]
            for part, one in zip(parts, found, strict=True)
        ]
        buckets = np.concatenate([one.buckets for one in found if one.buckets is not None])
        return self.counted(buckets, np.concatenate(hits), len(events))

    def counted(self, buckets: Ints, taken: NDArray[np.bool_], events: int) -> RowChange:
        """The counts after `events` more sampled events with pairs in these buckets (M, signals)."""
        cells, size = self._cells(buckets), len(self._signal_of)
        fresh = [np.bincount(part[part >= 0], minlength=size) for part in (cells[taken].ravel(), cells.ravel())]
        counts = self.counts * np.float32(0.5 ** (events / _HALF_LIFE)) + np.stack(fresh)
        return {_TABLE: (np.arange(2, dtype=np.int32), counts.astype(np.float32))}

    def _found(self, queries: Queries, candidates: Candidates) -> PairFeatures:
        return collect(self._signals, queries, candidates, self._recent, with_buckets=True)

    def _cells(self, buckets: Ints) -> Ints:
        """Columns of the table of counts, -1 where a signal has no bucket."""
        return np.where(buckets >= 0, buckets + self.starts, -1)

    def apply_change(self, change: RowChange) -> None:
        """Copy the counts of a change."""
        rows, counts = change[_TABLE]
        self.counts[rows] = counts

    def forget(self, user: int, context: ErasureContext) -> RowChange:
        """Unchanged: counts over all events reveal nothing about one user."""
        return all_rows(self.state())

    def view(self) -> TableState:
        """The counts, without a copy."""
        return {_TABLE: self.counts}

    def state(self) -> TableState:
        """A copy of the counts."""
        return {_TABLE: self.counts.copy()}

    def load_state(self, state: TableState) -> None:
        """Restore what `state` returned."""
        self.counts = np.array(state[_TABLE], dtype=np.float32)
