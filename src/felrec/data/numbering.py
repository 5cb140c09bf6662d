"""Numbers for ids and an order for events, without a loop over either."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from felrec.data.events import Rows


def encode(ids: pl.Series) -> tuple[Rows, pl.Series]:
    """Give a code for each value, and the distinct values that the codes number (in no particular order).

    >>> codes, values = encode(pl.Series([30, 10, 30]))
    >>> values.gather(codes).to_list()
    [30, 10, 30]
    """
    if ids.dtype == pl.String:
        values = ids.unique(maintain_order=True)
        return _int32(ids.cast(pl.Enum(values)).to_physical()), values
    column = ids.to_numpy()
    low, high = (int(column.min()), int(column.max())) if len(column) else (0, -1)
    # Ids that fill their range are numbered through a table, an order of magnitude faster than by hashing.
    if high - low <= 4 * len(column) + 1_000_000:
        return _encode_dense(column, low, high - low + 1)
    values = ids.unique(maintain_order=True)
    numbers = pl.DataFrame({"id": values, "code": np.arange(len(values), dtype=np.int32)})
    codes = pl.DataFrame({"id": ids}).join(numbers, on="id", how="left", maintain_order="left")["code"]
    return _int32(codes), values


def _encode_dense(column: NDArray[np.int64], low: int, span: int) -> tuple[Rows, pl.Series]:
    places = column - low
    present = np.zeros(span, dtype=np.bool_)
    present[places] = True
    codes = np.cumsum(present, dtype=np.int32) - np.int32(1)
    return codes[places], pl.Series(np.flatnonzero(present) + low, dtype=pl.Int64)


def _int32(codes: pl.Series) -> Rows:
    return codes.to_numpy().astype(np.int32)


def by_first_appearance(codes: Rows, size: int) -> tuple[Rows, NDArray[np.int64]]:
    """Renumber codes below `size` by first appearance; also the old code of each new number.

    >>> rows, old = by_first_appearance(np.array([7, 2, 7, 5], dtype=np.int32), size=9)
    >>> rows.tolist(), old.tolist()
    ([0, 1, 0, 2], [7, 2, 5])
    """
    n = len(codes)
    first = np.full(size, n, dtype=np.int64)
    # Where an index repeats, numpy keeps the last value assigned: backwards, that is the first appearance.
    first[codes[::-1]] = np.arange(n - 1, -1, -1)
    old = np.argsort(first, kind="stable")[: np.count_nonzero(first < n)]
    rows = np.zeros(size, dtype=np.int32)
    rows[old] = np.arange(len(old), dtype=np.int32)
    return rows[codes], old


def time_order(ticks: NDArray[Any]) -> NDArray[np.int64]:
    """Find the stable order that sorts `ticks`: ties keep their place.

    >>> time_order(np.array([5, 1, 5, 0])).tolist()
    [3, 1, 0, 2]
    """
    n = len(ticks)
    if n < 2 or bool(np.all(ticks[1:] >= ticks[:-1])):
        return np.arange(n, dtype=np.int64)
    index_bits = (n - 1).bit_length()
    whole = np.issubdtype(ticks.dtype, np.integer)
    if whole and (int(ticks.max()) - int(ticks.min())).bit_length() + index_bits <= 63:
        # Time and place in one integer: sorting those is stable, and several times faster than an argsort.
        keys = ticks.astype(np.int64)
        keys -= keys.min()
        keys <<= index_bits
        keys |= np.arange(n, dtype=np.int64)
        keys.sort()
        keys &= (1 << index_bits) - 1
        return keys
    return np.argsort(ticks, kind="stable")
