"""The compiled kernels: found if they were built when felrec was installed, and called with numpy arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from felrec.data.events import Rows
from felrec.model.kernels.native.tables import Questions, Tables, address
from felrec.recommender import Found, Queries, Selection

_NOTHING = np.zeros(0, dtype=np.int32)


@cache
def library() -> ctypes.CDLL | None:
    """The library, or None where installing felrec found no C compiler."""
    folder = Path(__file__).parent
    built = next((path for suffix in EXTENSION_SUFFIXES if (path := folder / f"answer{suffix}").exists()), None)
    if built is None:
        return None
    kernels = ctypes.CDLL(str(built))  # releases the interpreter lock during a call
    kernels.felrec_answer.argtypes = [ctypes.c_void_p] * 6
    return kernels


def answer(tables: Tables, queries: Queries, selections: Sequence[Selection], hidden: Rows) -> list[Found]:
    """The best items for each query, exactly. The arrays of `tables` must not change meanwhile."""
    kernels = library()
    assert kernels is not None, "ask `library` first"
    count = len(queries)
    k = np.array([min(selection.k, tables.catalogue) for selection in selections], dtype=np.int64)
    leave_out, leave_out_starts = _joined([selection.leave_out for selection in selections])
    candidates, starts = _joined([_candidates(selection) for selection in selections])
    whole = np.array([selection.candidates is None for selection in selections])
    candidate_starts, candidate_stops = np.where(whole, -1, starts[:-1]), starts[1:]
    pending, times = queries.pending, queries.pending_times
    questions = Questions(
        count,
        address(queries.users, "i4"),
        address(queries.times, "f8"),
        address(pending.values, "i4"),
        None if times is None else address(times, "f8"),
        address(pending.starts, "i8"),
        address(pending.stops, "i8"),
        address(k, "i8"),
        address(leave_out, "i4"),
        address(leave_out_starts, "i8"),
        address(hidden, "i4"),
        len(hidden),
        address(candidates, "i4"),
        address(candidate_starts, "i8"),
        address(candidate_stops, "i8"),
    )
    rows, scores = np.empty(k.sum(), dtype=np.int32), np.empty(k.sum(), dtype=np.float32)
    found, scored = np.empty((2, count), dtype=np.int64)
    outputs = (array.ctypes.data for array in (rows, scores, found, scored))
    if kernels.felrec_answer(ctypes.addressof(tables), ctypes.addressof(questions), *outputs):
        raise MemoryError(f"not enough memory to answer {count} queries")
    begins = (np.cumsum(k) - k).tolist()
    return [
        Found(rows[begin : begin + size], scores[begin : begin + size], of_query)
        for begin, size, of_query in zip(begins, found.tolist(), scored.tolist(), strict=True)
    ]


def _candidates(selection: Selection) -> Rows:
    return _NOTHING if selection.candidates is None else selection.candidates


def _joined(lists: Sequence[Rows]) -> tuple[Rows, NDArray[np.int64]]:
    """Lists one after another, and where each begins and the last ends."""
    ends = np.cumsum([0, *map(len, lists)], dtype=np.int64)
    return (np.concatenate(lists) if len(lists) > 1 else np.ascontiguousarray(lists[0])), ends
