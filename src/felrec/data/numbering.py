"""Number ids and sort events, vectorised."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from felrec.data.events import Rows, Times
from felrec.data.lazy_polars import pl
from felrec.data.reading.timestamps import Ticks

_BLOCK = 1 << 16  # events processed at a time, so that the output of one step is still in the CPU cache for the next
_LARGEST = np.iinfo(np.int32).max


class Codes(NamedTuple):
    """A number for each event's id, in no particular order."""

    codes: Rows  # (B,)
    size: int  # all codes are smaller; some may not occur
    ids: Callable[[NDArray[np.int64]], pl.Series]  # the ids of codes that occur


def coded(ids: pl.Series) -> Codes:
    """Give codes to integers or strings, by the fastest method that their values allow.

    >>> codes = coded(pl.Series([30, 10, 30]))
    >>> codes.codes.tolist(), codes.ids(np.array([20, 0])).to_list()
    ([20, 0, 20], [30, 10])
    """
    if ids.dtype.is_integer() and len(ids):
        low, high = int(ids.min()), int(ids.max())  # type: ignore[arg-type]
        # Ids that fill most of their range need no hashing, which takes an order of magnitude longer.
        if high - low < min(4 * len(ids) + 1_000_000, _LARGEST):
            codes = (ids - low).cast(pl.Int32).to_numpy()
            return Codes(codes, high - low + 1, lambda codes: pl.Series(codes + low, dtype=pl.Int64))
    codes, values = encode(ids if ids.dtype == pl.String else ids.cast(pl.Int64))
    return Codes(codes, len(values), values.gather)


def encode(ids: pl.Series) -> tuple[Rows, pl.Series]:
    """Return a code for each value, and the distinct values by code (in no particular order).

    >>> codes, values = encode(pl.Series([30, 10, 30]))
    >>> values.gather(codes).to_list()
    [30, 10, 30]
    """
    values = ids.unique(maintain_order=True)
    if ids.dtype == pl.String:
        return _int32(ids.cast(pl.Enum(values)).to_physical()), values
    numbers = pl.DataFrame({"id": values, "code": np.arange(len(values), dtype=np.int32)})
    codes = pl.DataFrame({"id": ids}).join(numbers, on="id", how="left", maintain_order="left")["code"]
    return _int32(codes), values


def _int32(codes: pl.Series) -> Rows:
    return codes.to_numpy().astype(np.int32)


def by_first_appearance(
    codes: Rows, size: int, order: NDArray[np.integer] | None = None
) -> tuple[Rows, NDArray[np.int64]]:
    """Renumber codes below `size` by first appearance, in `order` if given; also return the old code of each number.

    >>> rows, old = by_first_appearance(np.array([7, 2, 7, 5], dtype=np.int32), size=9)
    >>> rows.tolist(), old.tolist()
    ([0, 1, 0, 2], [7, 2, 5])
    """
    numbers = np.full(size, -1, dtype=np.int32)  # of the codes seen so far
    rows = np.empty(len(codes), dtype=np.int32)
    old, seen = [np.empty(0, dtype=np.int64)], 0
    for begin in range(0, len(codes), _BLOCK):
        window = slice(begin, begin + _BLOCK)
        # No index is out of bounds: `clip` only skips the check of each index, which is half the time of `take`.
        block = codes[window] if order is None else codes.take(order[window], mode="clip")
        found = numbers.take(block, mode="clip")
        unknown = np.flatnonzero(found < 0)  # usually empty after the first blocks
        if len(unknown):
            fresh = _number_fresh(numbers, block[unknown], seen)
            found[unknown] = numbers[block[unknown]]
            old.append(fresh)
            seen += len(fresh)
        rows[window] = found
    return rows, np.concatenate(old)


def _number_fresh(numbers: Rows, codes: Rows, seen: int) -> NDArray[np.int64]:
    """Number codes that have no number yet, from `seen` on; return them without repeats."""
    places = np.arange(len(codes), dtype=np.int32)
    # For a repeated index numpy keeps the last value assigned; in reversed order that is the first appearance.
    numbers[codes[::-1]] = places[::-1]
    fresh: Rows = codes[numbers[codes] == places]
    numbers[fresh] = np.arange(seen, seen + len(fresh), dtype=np.int32)
    return fresh.astype(np.int64)


def sort_times(ticks: Ticks) -> tuple[NDArray[np.integer], Times]:
    """Return the stable sort order of the times, and the seconds in that order.

    >>> order, seconds = sort_times(Ticks(np.array([5000, 1000, 5000, 0]), 1000))
    >>> order.tolist(), seconds.tolist()
    ([3, 1, 0, 2], [0.0, 1.0, 5.0, 5.0])
    """
    values = ticks.values
    if len(values) < 2 or bool(np.all(values[1:] >= values[:-1])):
        return np.arange(len(values)), ticks.seconds()
    if np.issubdtype(values.dtype, np.integer):
        index_bits = (len(values) - 1).bit_length()
        if (int(values.max()) - int(values.min())).bit_length() + index_bits <= 63 and index_bits <= 32:
            return _sort_packed(ticks, int(values.min()), index_bits)
    order = np.argsort(values, kind="stable")
    return order, Ticks(values[order], ticks.per_second).seconds()


def _sort_packed(ticks: Ticks, low: int, index_bits: int) -> tuple[NDArray[np.uint32], Times]:
    """Sort integers that hold time and position: stable, and several times faster than an argsort."""
    n = len(ticks.values)
    keys, order = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.uint32)
    for begin in range(0, n, _BLOCK):
        block = ticks.values[begin : begin + _BLOCK].astype(np.int64) - low
        keys[begin : begin + _BLOCK] = block << index_bits | np.arange(begin, begin + len(block))
    keys.sort()
    seconds = keys.view(np.float64)  # reuses the memory: allocating another array of this size takes time too
    for begin in range(0, n, _BLOCK):
        window = slice(begin, begin + _BLOCK)
        block = keys[window]
        order[window] = block & ((1 << index_bits) - 1)
        seconds[window] = Ticks((block >> index_bits) + low, ticks.per_second).seconds()
    return order, seconds
