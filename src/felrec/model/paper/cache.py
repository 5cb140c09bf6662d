"""The cache: vectors of users or items, without weights (section "Cache" of the paper)."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from felrec.data.tables.growing import room_for
from felrec.model.kernels.catalogue import consecutive


class Cache:
    """A growing table of vectors; a missing entry is the zero vector.

    Row -1 always reads as zero, so padded histories need no special case.

    >>> cache = Cache(2)
    >>> cache.write(np.array([3, 3]), torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
    >>> cache.read(np.array([3, 0, -1])).tolist()
    [[0.0, 1.0], [0.0, 0.0], [0.0, 0.0]]
    """

    def __init__(self, width: int, device: torch.device | str = "cpu") -> None:
        self.width, self.device = width, torch.device(device)
        self.clear()

    def clear(self) -> None:
        """Remove all vectors."""
        self._table = torch.zeros(1, self.width, device=self.device)  # table row r + 1 is cache row r
        self._lengths = torch.zeros(1, device=self.device)  # norms of the vectors, for the cosine with all of them
        self._rows = 0

    def __len__(self) -> int:
        """Number of rows in use: the highest row written plus one."""
        return self._rows

    def read(self, rows: NDArray[np.integer]) -> Tensor:
        """Vectors (…, D) of `rows` (…); a view if the rows are consecutive."""
        return self._table[self._places(rows)]

    def lengths(self, rows: NDArray[np.integer]) -> Tensor:
        """Lengths (B,) of the vectors of `rows` (B,); 0 for those never written."""
        return self._lengths[self._places(rows)]

    def unit_vectors(self, rows: NDArray[np.integer]) -> Tensor:
        """Vectors (B, D) of `rows` (B,) divided by their lengths; zero stays zero."""
        return self.read(rows) / self.lengths(rows).clamp(min=1e-12)[:, None]

    def write(self, rows: NDArray[np.integer], vectors: Tensor) -> None:
        """Overwrite rows (B,) with vectors (B, D). For duplicate rows the last one, the latest event, wins."""
        if len(rows) == 0:
            return
        self.grow(int(rows.max()) + 1)
        latest = last_occurrence(rows)
        index = torch.from_numpy(rows[latest].astype(np.int64) + 1).to(self.device)
        kept = vectors.detach()[torch.from_numpy(latest).to(vectors.device)].to(self._table.dtype)
        self._table[index] = kept
        self._lengths[index] = kept.norm(dim=1)

    def apply_change(self, rows: NDArray[np.integer], vectors: NDArray[np.float32]) -> None:
        """Overwrite distinct rows (B,) with vectors (B, D) of a change."""
        self.write(rows, torch.from_numpy(vectors).to(self.device))

    def unwritten(self, rows: NDArray[np.integer]) -> Tensor:
        """The vectors that rows (B,) have before they are written."""
        return torch.zeros(len(rows), self.width, device=self.device)

    def grow(self, rows: int) -> None:
        """Extend to at least this many rows. Room for later rows is not touched, so it takes no memory yet."""
        if rows <= self._rows:
            return
        used = self._rows + 1
        if rows + 1 > len(self._table):
            table = torch.empty(room_for(rows + 1, len(self._table)), self.width, device=self.device)
            lengths = torch.empty(len(table), device=self.device)
            table[:used], lengths[:used] = self._table[:used], self._lengths[:used]
            self._table, self._lengths = table, lengths
        self._table[used : rows + 1], self._lengths[used : rows + 1] = 0.0, 0.0
        self._rows = rows

    @property
    def vectors(self) -> Tensor:
        """All vectors (rows, D) in use, as a view."""
        return self._table[1 : self._rows + 1]

    @property
    def addresses(self) -> tuple[int, int]:
        """Where vectors and lengths of row 0 are, for compiled kernels."""
        assert self._table.dtype == self._lengths.dtype == torch.float32, "the kernels read single precision"
        return self._table.data_ptr() + 4 * self.width, self._lengths.data_ptr() + 4

    def snapshot(self) -> Tensor:
        """A copy (rows, D) on the CPU."""
        return self.vectors.clone().cpu()

    def restore(self, snapshot: Tensor) -> None:
        """Restore what `snapshot` returned."""
        empty_row = torch.zeros(1, self.width, device=self.device)
        self._table = torch.cat([empty_row, snapshot.to(self.device)])
        self._lengths = self._table.norm(dim=1)
        self._rows = len(snapshot)

    def _places(self, rows: NDArray[np.integer]) -> slice | Tensor:
        """Indices of rows in the table; unknown rows map to its first row, which is zero."""
        run = consecutive(rows)
        if run is not None and run.stop <= self._rows:
            return slice(run.start + 1, run.stop + 1)
        return torch.from_numpy(np.where(rows < self._rows, rows, -1) + 1).to(self.device)


def as_array(vectors: Tensor) -> NDArray[np.float32]:
    """Vectors (B, D) as an array on the CPU, as in a change."""
    array: NDArray[np.float32] = vectors.detach().float().cpu().numpy()
    return array


def last_occurrence(rows: NDArray[np.integer]) -> NDArray[np.int64]:
    """Positions, in ascending order, of the last occurrence of each distinct row.

    >>> last_occurrence(np.array([4, 2, 4, 7])).tolist()
    [1, 2, 3]
    """
    _, from_the_end = np.unique(rows[::-1], return_index=True)
    return np.sort(len(rows) - 1 - from_the_end)
