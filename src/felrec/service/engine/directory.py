"""External ids and their rows; ids are added and erased."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from itertools import filterfalse, islice, repeat, takewhile

import numpy as np

from felrec.data.events import Rows

_TAIL = 1_000  # most ids that are searched linearly before they are merged into the sorted list


class Directory:
    """Distinct ids by row. Rows are never reused: the row of an erased id stays empty.

    >>> users = Directory(["b", None, "a"])
    >>> users.extend(["c"])
    >>> users.rows(["a", "c", "x"]).tolist(), users.starting("", 9)
    ([2, 3, -1], ['a', 'b', 'c'])
    >>> users.forget([2])
    >>> users.row("a"), len(users), users.known
    (-1, 4, 2)
    """

    def __init__(self, ids: Iterable[str | None] = ()) -> None:
        self._ids = list(ids)
        self._rows = {name: row for row, name in enumerate(self._ids) if name is not None}
        self._sorted: list[str] = []
        self._tail = list(self._rows)  # not in `_sorted` yet
        self._sorting = threading.Lock()

    def __len__(self) -> int:
        """Number of rows, empty ones included."""
        return len(self._ids)

    @property
    def known(self) -> int:
        """Number of ids."""
        return len(self._rows)

    def row(self, name: str) -> int:
        """The row of an id, -1 if unknown."""
        return self._rows.get(name, -1)

    def rows(self, names: Sequence[str]) -> Rows:
        """The rows of ids, -1 where unknown."""
        return np.fromiter(map(self._rows.get, names, repeat(-1)), np.int32, len(names))

    def name(self, row: int) -> str:
        """The id of a row that is not empty."""
        name = self._ids[row]
        assert name is not None, f"row {row} was erased"
        return name

    @property
    def empty(self) -> Rows:
        """The rows of erased ids."""
        return np.array([row for row, name in enumerate(self._ids) if name is None], dtype=np.int32)

    def extend(self, names: Sequence[str | None]) -> None:
        """Add new ids in the next rows; None leaves a row empty."""
        new = {name: row for row, name in enumerate(names, len(self._ids)) if name is not None}
        self._rows.update(new)
        self._ids.extend(names)
        self._tail.extend(new)

    def forget(self, rows: Iterable[int]) -> None:
        """Erase the ids of these rows."""
        for row in rows:
            del self._rows[self.name(row)]
            self._ids[row] = None
        self._sorted, self._tail = [], list(self._rows)

    def starting(self, prefix: str, k: int, leave_out: Callable[[str], bool] = lambda _: False) -> list[str]:
        """The first k ids with this prefix, in alphabetical order, except those that `leave_out` accepts."""
        with self._sorting:  # readers share this
            if len(self._tail) > _TAIL:
                self._sorted, self._tail = sorted([*self._sorted, *self._tail]), []
        on = map(self._sorted.__getitem__, range(bisect_left(self._sorted, prefix), len(self._sorted)))
        found = islice(filterfalse(leave_out, takewhile(lambda name: name.startswith(prefix), on)), k)
        others = (name for name in self._tail if name.startswith(prefix) and not leave_out(name))
        return sorted([*found, *others])[:k]
