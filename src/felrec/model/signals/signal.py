"""The protocol of a signal: features computed from events, without weights per user or item.

A signal keeps a table of rows. It computes how a block of events changes these rows (`change`, read-only), copies the
changed rows (`apply_change`), and provides named features of items or of pairs of a query and an item. The names of
its state entries are unique and stored in runs and stores: a signal finds its entries in the state of the model.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from felrec.abilities import ErasureContext
from felrec.data.events import RowChange, Rows, prefixed, without_prefix
from felrec.data.tables.table import RowsByTable, RowTable, TableState
from felrec.model.signals.pairs import Candidates, Pairs
from felrec.model.signals.recent import BlockView
from felrec.recommender import Queries

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]


class Signal(Protocol):
    """A table of rows that events change."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its features, in order; empty if it has none."""
        ...

    def change(self, block: BlockView) -> RowChange:
        """The new values of the rows that a block of events changes. Does not apply them."""
        ...

    def apply_change(self, change: RowChange) -> None:
        """Copy this signal's rows of a change."""
        ...

    def forget(self, user: int, context: ErasureContext) -> RowChange:
        """The rows of a user and of their items without that user. Does not apply them."""
        ...

    def clear(self) -> None:
        """Remove all rows."""
        ...

    def view(self) -> RowsByTable:
        """All rows without a copy, by the name of their table."""
        ...

    def state(self) -> TableState:
        """A copy of all rows, by the name of their table."""
        ...

    def load_state(self, state: TableState) -> None:
        """Restore what `state` returned; entries of other signals are left alone."""
        ...


class OneTable:
    """A signal that keeps one table; the names of its entries in a state begin with a prefix."""

    def __init__(self, table: RowTable, prefix: str) -> None:
        self._table, self._prefix = table, prefix

    def apply_change(self, change: RowChange) -> None:
        """Copy the rows of a change that are this signal's."""
        self._table.apply_change(without_prefix(self._prefix, change))

    def clear(self) -> None:
        """Remove all rows."""
        self._table.clear()

    def view(self) -> RowsByTable:
        """All rows, without a copy."""
        return prefixed(self._prefix, self._table.view())

    def state(self) -> TableState:
        """A copy of all rows."""
        return prefixed(self._prefix, self._table.state())

    def load_state(self, state: TableState) -> None:
        """Restore what `state` returned."""
        self._table.load_state(without_prefix(self._prefix, state))


class FoundPairs(Protocol):
    """The pairs of queries and candidates for which one signal has features."""

    @property
    def keys(self) -> Ints:
        """Query * number of candidates + column (R,); a pair may appear several times."""
        ...

    @property
    def own_items(self) -> bool:
        """Whether these are the users' own items."""
        ...

    def features(self, pairs: Pairs) -> Floats:
        """Features (M, F) of all pairs that any signal found, by the signal's `names`."""
        ...

    def buckets(self, pairs: Pairs, features: Floats) -> Ints:
        """The signal's bucket of similar pairs for each pair (M,); -1 where it has no features."""
        ...


class PairSignal(Signal, Protocol):
    """A signal with features for a few hundred items of each user."""

    @property
    def bucket_count(self) -> int:
        """The number of buckets of `FoundPairs.buckets`."""
        ...

    def find(self, queries: Queries, candidates: Candidates) -> FoundPairs:
        """The pairs for which it has features."""
        ...


def one_row(row: int) -> Rows:
    """A single row, as an array."""
    return np.array([row], dtype=np.int32)
