"""A large table of the state while it is read: rows without the value that repeats at their end."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from felrec.data.tables.growing import GrowingArray
from felrec.data.tables.packed_rows import PackedRows

_AT_ONCE = 4_096  # rows that are trimmed together; pages have few
_BITS = "bits"


class TrimmedRows:
    """Rows to be written and read like an array. Most rows of lists are free slots, which take no memory here.

    A row is kept as what differs from its last value, bit by bit, up to the last difference.

    >>> rows = TrimmedRows((3, 4), np.dtype("<f4"))
    >>> rows[np.array([0, 2])] = np.array([[5, 0, 0, 0], [7, -1, -1, -1]], dtype=np.float32)
    >>> np.asarray(rows).tolist()
    [[5.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0], [7.0, -1.0, -1.0, -1.0]]
    """

    def __init__(self, shape: tuple[int, ...], dtype: DTypeLike) -> None:
        self.shape, self.dtype = shape, np.dtype(dtype)
        self._word = np.dtype(f"u{self.dtype.itemsize}")
        self._differences = PackedRows(int(np.prod(shape[1:])), {_BITS: (self._word, 0)})
        self._last = GrowingArray(self._word)
        self._waiting: list[tuple[NDArray[np.integer], NDArray[Any]]] = []
        self._rows_waiting = 0
        self._differences.grow(len(self))
        self._last.grow(len(self))

    def __len__(self) -> int:
        return self.shape[0]

    def __setitem__(self, rows: NDArray[np.integer], values: NDArray[Any]) -> None:
        self._waiting.append((rows, values))
        self._rows_waiting += len(rows)
        if self._rows_waiting >= _AT_ONCE:
            self._trim()

    def __getitem__(self, rows: NDArray[np.integer] | slice) -> NDArray[Any]:
        self._trim()
        at = np.arange(len(self))[rows]
        bits: NDArray[Any] = self._differences.read(at, _BITS) ^ self._last.read(at)[:, None]
        return bits.view(self.dtype).reshape(-1, *self.shape[1:])

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        """All rows."""
        values = np.empty(self.shape, self.dtype if dtype is None else dtype)
        for start in range(0, len(self), _AT_ONCE):
            values[start : start + _AT_ONCE] = self[start : start + _AT_ONCE]
        return values

    def _trim(self) -> None:
        """Keep what was written since; of a row that was written twice the later values."""
        if not self._waiting:
            return
        rows = np.concatenate([rows for rows, _ in self._waiting])
        values = np.concatenate([values for _, values in self._waiting]).astype(self.dtype, copy=False)
        self._waiting, self._rows_waiting = [], 0
        kept, from_the_end = np.unique(rows[::-1], return_index=True)
        bits = values[len(rows) - 1 - from_the_end].reshape(len(kept), -1).view(self._word)
        self._last.write(kept, bits[:, -1])
        self._differences.write(kept, {_BITS: bits ^ bits[:, -1:]})
