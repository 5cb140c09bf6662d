"""Read and compare the vectors of a whole catalogue, as every request does."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

_MANY = 4  # queries from which on a matrix product is faster


def consecutive(rows: NDArray[np.integer]) -> slice | None:
    """The slice that selects `rows`, if they are consecutive: slicing a table of vectors copies nothing.

    >>> consecutive(np.array([4, 5, 6])), consecutive(np.array([4, 6, 5])), consecutive(np.array([-1, 0]))
    (slice(4, 7, None), None, None)
    """
    if rows.ndim != 1 or not len(rows) or rows[0] < 0 or int(rows[-1]) - int(rows[0]) + 1 != len(rows):
        return None
    return slice(int(rows[0]), int(rows[-1]) + 1) if bool((rows[1:] - rows[:-1] == 1).all()) else None


def dot_products(queries: Tensor, vectors: Tensor) -> Tensor:
    """Products (B, C) of vectors (B, D) and (C, D). For few queries, as in a service, numpy is far faster."""
    if len(queries) < _MANY and queries.device.type == "cpu" and not torch.is_grad_enabled():
        every = vectors.numpy()
        return torch.from_numpy(np.stack([np.einsum("cd,d->c", every, query) for query in queries.numpy()]))
    return queries @ vectors.T
