"""The protocols of all tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from felrec.data.events import RowChange

TableState = dict[str, NDArray[Any]]  # the arrays of a table, by name


class ReadableRows(Protocol):
    """Rows to be read some at a time: an array, or rows that are kept otherwise."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: NDArray[np.integer], /) -> NDArray[Any]:
        """A copy of these rows."""
        ...


RowsByTable = Mapping[str, ReadableRows]


class Stored(Protocol):
    """Arrays, by name, that can be saved and restored."""

    def state(self) -> TableState:
        """A copy of all arrays."""
        ...

    def load_state(self, state: TableState) -> None:
        """Replace all arrays by what `state` returned."""
        ...


class RowTable(Stored, Protocol):
    """Arrays of rows, by name: part of a recommender's state."""

    def change(self, *events: Any, **columns: Any) -> RowChange:
        """The rows that these events would write, without writing them. Each table declares the columns it needs."""
        ...

    def apply_change(self, change: RowChange) -> None:
        """Write what `change` returned."""
        ...

    def view(self) -> RowsByTable:
        """All rows without a copy: valid until the next change, and not to be written."""
        ...

    def clear(self) -> None:
        """Remove all rows."""
        ...
