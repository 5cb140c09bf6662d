"""What a signal is: one thing that events tell, which costs no weights per user or item.

A signal keeps a table of rows. It works out how a block of events changes these rows (`change`, reads only), copies
the changed rows (`apply_change`), and offers named features of items or of pairs of a query and an item. The entries
of its state have names of their own, which runs and stores keep: a signal finds its entries in the whole state.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from felrec.data.events import RowChange, Rows, prefixed, without_prefix
from felrec.data.tables.table import RowTable, TableState
from felrec.model.signals.pairs import Candidates, Pairs
from felrec.model.signals.recent import Block
from felrec.recommender import ErasureContext, Queries

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]


class Signal(Protocol):
    """A table of rows that events change."""

    @property
    def names(self) -> tuple[str, ...]:
        """Its features, in their order; none if it is read in another way."""
        ...

    def change(self, block: Block) -> RowChange:
        """The rows that a block of events changes, as they will be. Reads only."""
        ...

    def apply_change(self, change: RowChange) -> None:
        """Copy the rows of a change that are this signal's."""
        ...

    def forget(self, user: int, context: ErasureContext) -> RowChange:
        """The rows of a user and of their items without that user. Reads only."""
        ...

    def clear(self) -> None:
        """Remove all rows."""
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

    def state(self) -> TableState:
        """A copy of all rows."""
        return prefixed(self._prefix, self._table.state())

    def load_state(self, state: TableState) -> None:
        """Restore what `state` returned."""
        self._table.load_state(without_prefix(self._prefix, state))


class FoundPairs(Protocol):
    """The pairs of queries and candidates that one signal speaks for."""

    @property
    def keys(self) -> Ints:
        """Query * number of candidates + column (R,); a pair may appear several times."""
        ...

    @property
    def own_items(self) -> bool:
        """Whether these are items that the user had."""
        ...

    def features(self, pairs: Pairs) -> Floats:
        """Features (M, F) of all pairs that any signal found, by the signal's `names`."""
        ...

    def buckets(self, pairs: Pairs, features: Floats) -> Ints:
        """Which of the signal's buckets of similar pairs each pair (M,) falls in; -1 where it says nothing."""
        ...


class PairSignal(Signal, Protocol):
    """A signal that speaks for a few hundred items of each user."""

    @property
    def bucket_count(self) -> int:
        """How many buckets `FoundPairs.buckets` tells apart."""
        ...

    def find(self, queries: Queries, candidates: Candidates) -> FoundPairs:
        """The pairs it speaks for."""
        ...


def all_rows(state: TableState) -> RowChange:
    """A whole state as a change: what stays as it is."""
    return {name: (np.arange(len(values), dtype=np.int32), values) for name, values in state.items()}


def one_row(row: int) -> Rows:
    """A single row, as an array."""
    return np.array([row], dtype=np.int32)
