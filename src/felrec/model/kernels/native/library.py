"""The compiled kernels: found if they were built when felrec was installed, and called with numpy arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from itertools import accumulate
from pathlib import Path

import numpy as np

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
    kernels.felrec_change.argtypes = [ctypes.c_void_p] * 3
    kernels.felrec_encode.argtypes = [ctypes.c_void_p] * 2 + [ctypes.c_int64] * 2
    kernels.felrec_apply.argtypes, kernels.felrec_apply.restype = [ctypes.c_void_p] * 2, ctypes.c_int64
    for kernel, arguments in (
        (kernels.felrec_score_items, [ctypes.c_void_p] * 2 + [ctypes.c_int64]),
        (kernels.felrec_renew_items, [ctypes.c_void_p] * 2 + [ctypes.c_int64]),
        (kernels.felrec_renew_chunks, [ctypes.c_void_p]),
        (kernels.felrec_new_moment, [ctypes.c_void_p]),
    ):
        kernel.argtypes, kernel.restype = arguments, None
    kernels.felrec_compare.argtypes = [ctypes.c_void_p] * 4 + [ctypes.c_int64] + [ctypes.c_void_p] * 4
    kernels.felrec_most_pairs.argtypes, kernels.felrec_most_pairs.restype = [ctypes.c_void_p] * 2, ctypes.c_int64
    kernels.felrec_learn.argtypes = [ctypes.c_void_p] * 3
    kernels.felrec_encode_histories.argtypes = [ctypes.c_void_p]
    return kernels


def state_kernels() -> str:
    """What computes the state, to the last bit: a store says by which its rows were made."""
    return "numpy" if library() is None else "c1"


def asked(queries: Queries, **more: int) -> Questions:
    """Queries for the kernels, which read the arrays where they are: the caller keeps them."""
    pending, times = queries.pending, queries.pending_times
    return Questions(
        count=len(queries),
        users=address(queries.users, "i4"),
        times=address(queries.times, "f8"),
        pending=address(pending.values, "i4"),
        pending_times=None if times is None else address(times, "f8"),
        pending_starts=address(pending.starts, "i8"),
        pending_stops=address(pending.stops, "i8"),
        **more,
    )


def answer(tables: Tables, queries: Queries, selections: Sequence[Selection], hidden: Rows) -> list[Found]:
    """The best items for each query, exactly. The arrays of `tables` must not change meanwhile."""
    kernels = library()
    assert kernels is not None, "ask `library` first"
    ks = [min(selection.k, tables.catalogue) for selection in selections]
    begins = [0, *accumulate(ks)]  # of the items found for each query
    leave_out, out_ends = _joined([selection.leave_out for selection in selections])
    candidates, candidate_ends = _joined([_candidates(selection) for selection in selections])
    starts = [
        -1 if selection.candidates is None else start
        for selection, start in zip(selections, candidate_ends[:-1], strict=True)
    ]
    count = len(queries)
    k, out_starts, out_stops, candidate_starts, candidate_stops = np.array(
        [ks, out_ends[:-1], out_ends[1:], starts, candidate_ends[1:]], dtype=np.int64
    )
    questions = asked(
        queries,
        k=address(k, "i8"),
        leave_out=address(leave_out, "i4"),
        leave_out_starts=address(out_starts, "i8"),
        leave_out_stops=address(out_stops, "i8"),
        hidden=address(hidden, "i4"),
        hidden_count=len(hidden),
        candidates=address(candidates, "i4"),
        candidate_starts=address(candidate_starts, "i8"),
        candidate_stops=address(candidate_stops, "i8"),
    )
    rows, scores = np.empty(begins[-1], dtype=np.int32), np.empty(begins[-1], dtype=np.float32)
    found, scored = np.empty((2, count), dtype=np.int64)
    outputs = (array.ctypes.data for array in (rows, scores, found, scored))
    if kernels.felrec_answer(ctypes.addressof(tables), ctypes.addressof(questions), *outputs):
        raise MemoryError(f"not enough memory to answer {count} queries")
    ends = (begin + size for begin, size in zip(begins, found.tolist(), strict=False))
    return [
        Found(rows[begin:end], scores[begin:end], of_query)
        for begin, end, of_query in zip(begins, ends, scored.tolist(), strict=False)
    ]


def _candidates(selection: Selection) -> Rows:
    return _NOTHING if selection.candidates is None else selection.candidates


def _joined(lists: Sequence[Rows]) -> tuple[Rows, list[int]]:
    """Lists one after another, and where each begins and the last ends."""
    rows = lists[0] if len(lists) == 1 else np.concatenate(lists)
    return np.ascontiguousarray(rows), [0, *accumulate(map(len, lists))]
