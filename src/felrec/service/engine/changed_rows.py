"""Which rows of the state have changed since they were saved, and a save of them that is under way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from felrec.data.events import RowChange
from felrec.data.tables.growing import GrowingArray
from felrec.data.tables.table import RowsByTable
from felrec.data.tables.trimmed_values import TrimmedChange, TrimmedValues, between, trimmed_rows
from felrec.service.engine.serving_state import ServingState

_ROWS = 128  # of each table in a piece of a save
_IN, _OUT = np.array(True), np.array(False)


class ChangedRows:
    """A set of rows of each table."""

    def __init__(self) -> None:
        self._tables: dict[str, GrowingArray] = {}

    def __bool__(self) -> bool:
        return bool(self._tables)

    def add(self, change: RowChange) -> None:
        """Add the rows of a change."""
        for name, (rows, _) in change.items():
            if name not in self._tables:
                self._tables[name] = GrowingArray(np.bool_)
            self._tables[name].write(rows, _IN)

    def add_all(self, other: ChangedRows) -> None:
        """Add the rows of another set."""
        rows = {name: np.flatnonzero(there.values).astype(np.int32) for name, there in other._tables.items()}
        self.add({name: (numbers, _IN) for name, numbers in rows.items()})

    def add_tables(self, tables: RowsByTable) -> None:
        """Add all rows of tables."""
        self.add({name: (np.arange(len(rows), dtype=np.int32), _IN) for name, rows in tables.items()})

    def discard(self, change: TrimmedChange) -> None:
        """Remove rows that are in the set."""
        for name, (rows, _) in change.items():
            self._tables[name].write(rows, _OUT)

    def copy(self) -> ChangedRows:
        """The same rows."""
        other = ChangedRows()
        other.add_all(self)
        return other

    def numbers(self) -> NDArray[np.int64]:
        """The numbers of rows that are in the set for any table, in ascending order."""
        every = np.zeros(max(map(len, self._tables.values()), default=0), dtype=np.bool_)
        for there in self._tables.values():
            every[: len(there)] |= there.values
        return np.flatnonzero(every)

    def among(self, rows: Mapping[str, NDArray[np.integer]]) -> dict[str, NDArray[np.integer]]:
        """Those of some rows that are in the set."""
        return {name: rows[name][there.read(rows[name])] for name, there in self._tables.items() if name in rows}

    def of(self, numbers: NDArray[np.integer]) -> dict[str, NDArray[np.integer]]:
        """The rows of each table with one of these numbers."""
        return {name: numbers[there.read(numbers)] for name, there in self._tables.items()}


class Save:
    """A save under way: the rows it has, and which of them are still to be written."""

    def __init__(self, rows: ChangedRows, applied: int) -> None:
        self.rows, self.applied, self.seconds = rows, applied, 0.0
        self._left = rows.copy()
        self._parts = iter(_pieces(rows.numbers()))
        self._copies: list[TrimmedChange] = []  # of rows that were about to change, one for each block
        self._copied_parts: Iterator[TrimmedChange] | None = None

    def next_rows(self, state: ServingState) -> TrimmedChange | None:
        """Rows that are still to be written, as they are now; None if there are none."""
        part = next(self._parts, None)
        if part is not None:
            return self._taken(self._left.of(part), state)
        if self._copied_parts is None:  # no row is left that could be copied
            self._copied_parts = _in_pieces(self._copies)
        return next(self._copied_parts, None)

    def keep(self, change: RowChange, state: ServingState) -> None:
        """Copy the rows that are still to be written and about to be changed."""
        copies = self._taken(self._left.among({name: rows for name, (rows, _) in change.items()}), state)
        if copies:
            self._copies.append(copies)

    def _taken(self, rows: Mapping[str, NDArray[np.integer]], state: ServingState) -> TrimmedChange:
        assert state.servable is not None
        view = state.servable.view()
        taken = {
            name: (numbers.astype(np.int32), trimmed_rows(view[name], numbers))
            for name, numbers in rows.items()
            if len(numbers)
        }
        self._left.discard(taken)
        return taken


def _pieces(numbers: NDArray[np.integer]) -> list[NDArray[np.integer]]:
    return np.array_split(numbers, -(-len(numbers) // _ROWS)) if len(numbers) else []


def _in_pieces(changes: Sequence[TrimmedChange]) -> Iterator[TrimmedChange]:
    """Changes of different rows, in pieces of neighbouring rows: who looks for some rows need not read all pieces."""
    joined = TrimmedChange()
    for name in dict.fromkeys(name for change in changes for name in change):
        parts = [change[name] for change in changes if name in change]
        rows = np.concatenate([rows for rows, _ in parts])
        order = np.argsort(rows)
        joined[name] = rows[order], TrimmedValues.joined([values for _, values in parts]).picked(order)
    numbers: list[NDArray[np.integer]] = [np.zeros(0, dtype=np.int64), *(rows for rows, _ in joined.values())]
    for piece in _pieces(np.unique(np.concatenate(numbers))):
        yield between(joined, int(piece[0]), int(piece[-1]) + 1)
