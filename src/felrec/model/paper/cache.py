"""The cache: vectors of users or of items, without weights (section "Cache" of the paper)."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

_MANY = 4  # vectors that are worth a matrix product with a whole catalogue


class Cache:
    """A growing table of vectors; an absent entry is the zero vector.

    Row -1 is nobody: it always reads as zero, so padded histories need no special case.

    >>> cache = Cache(2)
    >>> cache.write(np.array([3, 3]), torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
    >>> cache.read(np.array([3, 0, -1])).tolist()
    [[0.0, 1.0], [0.0, 0.0], [0.0, 0.0]]
    """

    def __init__(self, width: int, device: torch.device | str = "cpu") -> None:
        self.width = width
        self._table = torch.zeros(1, width, device=device)  # table row r + 1 is cache row r
        self._lengths = torch.zeros(1, device=device)  # of the vectors; a cosine with everything needs them all
        self._rows = 0

    def __len__(self) -> int:
        """Number of rows in use: the highest row written plus one."""
        return self._rows

    @property
    def device(self) -> torch.device:
        """Where the vectors live."""
        return self._table.device

    def read(self, rows: NDArray[np.integer]) -> Tensor:
        """Vectors (…, D) of `rows` (…); a contiguous run is a view, which makes whole catalogues free."""
        if rows.ndim == 1 and _is_run(rows) and rows[-1] < self._rows:
            return self._table[int(rows[0]) + 1 : int(rows[-1]) + 2]
        index = np.where(rows < self._rows, rows, -1) + 1
        return self._table[torch.from_numpy(index).to(self.device)]

    def lengths(self, rows: NDArray[np.integer]) -> Tensor:
        """Lengths (B,) of the vectors of `rows` (B,); 0 for those never written."""
        if _is_run(rows) and rows[-1] < self._rows:
            return self._lengths[int(rows[0]) + 1 : int(rows[-1]) + 2]
        index = np.where(rows < self._rows, rows, -1) + 1
        return self._lengths[torch.from_numpy(index).to(self.device)]

    def write(self, rows: NDArray[np.integer], vectors: Tensor) -> None:
        """Overwrite rows (B,) with vectors (B, D). Of duplicate rows the last one, the latest event, wins."""
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
        """What rows (B,) read as before they are written."""
        return torch.zeros(len(rows), self.width, device=self.device)

    def grow(self, rows: int) -> None:
        """Make room for rows below `rows`, by doubling so that growth stays cheap."""
        if rows + 1 > len(self._table):
            table = torch.zeros(max(rows + 1, 2 * len(self._table)), self.width, device=self.device)
            lengths = torch.zeros(len(table), device=self.device)
            table[: len(self._table)], lengths[: len(self._table)] = self._table, self._lengths
            self._table, self._lengths = table, lengths
        self._rows = max(self._rows, rows)

    def clear(self) -> None:
        """Forget everything."""
        self._table = torch.zeros(1, self.width, device=self.device)
        self._lengths = torch.zeros(1, device=self.device)
        self._rows = 0

    def snapshot(self) -> Tensor:
        """A copy (rows, D) on the CPU."""
        return self._table[1 : self._rows + 1].clone().cpu()

    def restore(self, snapshot: Tensor) -> None:
        """Put back what `snapshot` returned."""
        empty_row = torch.zeros(1, self.width, device=self.device)
        self._table = torch.cat([empty_row, snapshot.to(self.device)])
        self._lengths = self._table.norm(dim=1)
        self._rows = len(snapshot)

    def to(self, device: torch.device | str) -> Cache:
        """Move the vectors to a device."""
        self._table, self._lengths = self._table.to(device), self._lengths.to(device)
        return self


def as_array(vectors: Tensor) -> NDArray[np.float32]:
    """Vectors (B, D) as a change carries them, on the CPU."""
    array: NDArray[np.float32] = vectors.detach().float().cpu().numpy()
    return array


def products(queries: Tensor, vectors: Tensor) -> Tensor:
    """Products (B, C) of vectors (B, D) and (C, D). For a few queries, as in a service, numpy is far faster."""
    if len(queries) < _MANY and queries.device.type == "cpu" and not torch.is_grad_enabled():
        every = vectors.numpy()
        return torch.from_numpy(np.stack([np.einsum("cd,d->c", every, query) for query in queries.numpy()]))
    return queries @ vectors.T


def last_occurrence(rows: NDArray[np.integer]) -> NDArray[np.int64]:
    """Positions, in ascending order, at which each distinct row stands for the last time.

    >>> last_occurrence(np.array([4, 2, 4, 7])).tolist()
    [1, 2, 3]
    """
    _, from_the_end = np.unique(rows[::-1], return_index=True)
    return np.sort(len(rows) - 1 - from_the_end)


def _is_run(rows: NDArray[np.integer]) -> bool:
    """Whether rows are consecutive, and there are any but nobody."""
    if not len(rows) or rows[0] < 0 or int(rows[-1]) - int(rows[0]) + 1 != len(rows):
        return False
    return bool((rows[1:] - rows[:-1] == 1).all())
