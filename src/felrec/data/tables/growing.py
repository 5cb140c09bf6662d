"""Arrays that grow at their end."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


def room_for(rows: int, room: int) -> int:
    """The capacity to allocate for `rows`: at least double `room`, so that growth has constant cost per row."""
    return max(rows, 2 * room)


class GrowingArray:
    """Rows of one type and shape; a row that was never written is `fill`.

    Room for later rows is reserved but not touched, so that it takes no memory until it is used.

    >>> counts = GrowingArray(np.int64)
    >>> counts.write(np.array([1, 3]), np.array([5, 7]))
    >>> counts.values.tolist(), counts.read(np.array([3, 9])).tolist()
    ([0, 5, 0, 7], [7, 0])
    >>> counts.append(np.array([8]))
    >>> len(counts)
    5
    """

    def __init__(self, dtype: DTypeLike, shape: tuple[int, ...] = (), fill: float | np.void = 0) -> None:
        self.dtype, self.shape, self.fill = np.dtype(dtype), shape, fill
        self.clear()

    def __len__(self) -> int:
        return self._length

    @property
    def values(self) -> NDArray[Any]:
        """All rows, as a view."""
        return self._room[: self._length]

    @property
    def room(self) -> NDArray[Any]:
        """The memory of all rows and of some that may follow; another array after it has moved."""
        return self._room

    def clear(self) -> None:
        """Remove all rows."""
        self._room, self._length = self.blank(0), 0

    def blank(self, rows: int) -> NDArray[Any]:
        """Rows that were never written."""
        return np.full((rows, *self.shape), self.fill, dtype=self.dtype)

    def load(self, values: NDArray[Any]) -> None:
        """Replace all rows by a copy of `values`."""
        self._room = np.array(values, dtype=self.dtype, order="C").reshape(-1, *self.shape)
        self._length = len(self._room)

    def grow(self, rows: int) -> None:
        """Extend to at least this many rows."""
        if rows <= self._length:
            return
        if rows > len(self._room):
            room = np.empty((room_for(rows, len(self._room)), *self.shape), dtype=self.dtype)
            room[: self._length] = self.values
            self._room = room
        self._room[self._length : rows] = self.fill
        self._length = rows

    def append(self, values: NDArray[Any]) -> None:
        """Add rows at the end."""
        start = self._length
        self.grow(start + len(values))
        self._room[start : self._length] = values

    def read(self, rows: NDArray[np.integer]) -> NDArray[Any]:
        """Copies of rows (B,); those beyond the end, and row -1, are `fill`."""
        known = (rows >= 0) & (rows < self._length)
        if known.all():
            every: NDArray[Any] = self._room[rows]
            return every
        values = self.blank(len(rows))
        values[known] = self._room[rows[known]]
        return values

    def write(self, rows: NDArray[np.integer], values: NDArray[Any]) -> None:
        """Overwrite distinct rows (B,)."""
        self.grow(int(rows.max(initial=-1)) + 1)
        self._room[rows] = values
