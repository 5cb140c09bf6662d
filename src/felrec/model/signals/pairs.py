"""Pairs of a query and a candidate for which some signal has features.

These are only a few hundred items of a catalogue: the user's own items, and items that others took together with or
right after them. All other items are scored without pair features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from felrec.data.events import Rows
from felrec.model.signals.recent import RecentEvents
from felrec.recommender import Queries

if TYPE_CHECKING:
    from felrec.model.signals.signal import FoundPairs, PairSignal

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]


@dataclass
class Candidates:
    """The items to score, by row and by column, with their number of events."""

    rows: Rows  # (C,)
    column_of: Ints  # by item row, -1 if not a candidate; the last entry is always -1
    events: Floats  # (C,) number of events so far

    @classmethod
    def of(cls, rows: Rows, recent: RecentEvents) -> Candidates:
        """Index candidates."""
        columns = np.full(max(int(rows.max(initial=-1)) + 1, recent.items.owners) + 1, -1, dtype=np.int64)
        columns[rows] = np.arange(len(rows))
        return cls(rows, columns, recent.items.counts(rows).astype(np.float32))

    def __len__(self) -> int:
        return len(self.rows)

    def nowhere(self) -> Candidates:
        """The same candidates for a signal that is to find none of them."""
        return Candidates(self.rows, np.full_like(self.column_of, -1), self.events)

    def columns(self, items: NDArray[np.integer]) -> Ints:
        """The columns of items, -1 for items that are not candidates and for row -1."""
        columns: Ints = self.column_of[np.minimum(items, len(self.column_of) - 1)]
        return columns


@dataclass(frozen=True)
class Pairs:
    """The distinct pairs that signals found."""

    query: Ints  # (M,)
    column: Ints  # (M,)
    events: Floats  # (M,) number of events of the candidate
    own: NDArray[np.bool_]  # (M,) whether a signal knows the candidate as an item of the user
    taken: Floats  # (B,) number of events of each query's user
    _number: NDArray[np.int32]  # pair number by key

    def numbers(self, keys: Ints) -> NDArray[np.int32]:
        """The number of the pair of each key."""
        return self._number[keys]

    def __len__(self) -> int:
        return len(self.query)


@dataclass(frozen=True)
class PairFeatures:
    """Pairs with their features."""

    pairs: Pairs
    names: tuple[str, ...]
    features: Floats  # (M, F)
    buckets: Ints | None = None  # (M, number of signals), if requested

    def __getitem__(self, name: str) -> Floats:
        """One feature (M,), such as `repetition.log_count`."""
        return self.features[:, self.names.index(name)]


def collect(
    signals: Sequence[PairSignal],
    queries: Queries,
    candidates: Candidates,
    recent: RecentEvents,
    *,
    with_buckets: bool = False,
    silent: PairSignal | None = None,
) -> PairFeatures:
    """All pairs that any of the signals finds, except a silent one, with their features."""
    found = [signal.find(queries, candidates.nowhere() if signal is silent else candidates) for signal in signals]
    pairs = _joined(found, queries, candidates, recent)
    features = [one.features(pairs) for one in found]
    buckets = [one.buckets(pairs, its) for one, its in zip(found, features, strict=True)] if with_buckets else None
    return PairFeatures(
        pairs,
        tuple(name for signal in signals for name in signal.names),
        np.concatenate([np.zeros((len(pairs), 0), dtype=np.float32), *features], axis=1),
        None if buckets is None else np.stack(buckets, axis=1),
    )


def _joined(found: Sequence[FoundPairs], queries: Queries, candidates: Candidates, recent: RecentEvents) -> Pairs:
    is_pair, is_own = np.zeros((2, len(queries) * len(candidates)), dtype=bool)
    for one in found:
        is_pair[one.keys] = True
        if one.own_items:
            is_own[one.keys] = True
    distinct = np.flatnonzero(is_pair)
    number = np.empty(len(is_pair), dtype=np.int32)
    number[distinct] = np.arange(len(distinct), dtype=np.int32)
    query, column = np.divmod(distinct, max(1, len(candidates)))
    taken = recent.taken(queries).astype(np.float32)
    return Pairs(query, column, candidates.events[column], is_own[distinct], taken, number)
