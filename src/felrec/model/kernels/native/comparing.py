"""Ranks of targets by the compiled kernels, on as many cores as torch may use."""

from __future__ import annotations

import ctypes

import numpy as np

from felrec.abilities import Comparison
from felrec.data.events import Rows
from felrec.data.pending import Pending
from felrec.model.kernels.native.library import asked, library
from felrec.model.kernels.native.tables import Tables, address
from felrec.model.kernels.parallel import in_parallel
from felrec.recommender import Queries

_AT_ONCE = 128  # queries of a piece of work: enough of them have similar targets, and two cores share a block


def compare(tables: Tables, queries: Queries, targets: Rows, leave_out: Pending, others: Rows) -> Comparison:
    """Compare the targets (B,) with the whole catalogue, and score other rows (B, S)."""
    pieces = [slice(start, start + _AT_ONCE) for start in range(0, len(queries), _AT_ONCE)]
    found = in_parallel(
        lambda piece: _piece(tables, queries[piece], targets[piece], leave_out[piece], others[piece]), pieces
    )
    return Comparison(*map(np.concatenate, zip(*found, strict=True)))


def _piece(tables: Tables, queries: Queries, targets: Rows, leave_out: Pending, others: Rows) -> Comparison:
    kernels, count = library(), len(queries)
    assert kernels is not None, "ask `library` first"
    everything = np.full(count, -1)
    questions = asked(
        queries,
        leave_out=address(leave_out.values, "i4"),
        leave_out_starts=address(leave_out.starts, "i8"),
        leave_out_stops=address(leave_out.stops, "i8"),
        candidate_starts=address(everything, "i8"),
    )
    scores, of_others = np.empty(count, dtype=np.float32), np.empty(others.shape, dtype=np.float32)
    better, equal = np.empty((2, count), dtype=np.int64)
    failed = kernels.felrec_compare(
        ctypes.addressof(tables),
        ctypes.addressof(questions),
        address(targets, "i4"),
        address(others, "i4"),
        others.shape[1],
        *(array.ctypes.data for array in (scores, of_others, better, equal)),
    )
    if failed:
        raise MemoryError(f"not enough memory to rank the items of {count} queries")
    return Comparison(better, equal, scores, of_others)
