"""The compiled kernels: found if they were built when felrec was installed, and called with numpy arrays."""

from __future__ import annotations

import ctypes
import os
from array import array
from collections.abc import Sequence
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from itertools import accumulate
from pathlib import Path

import numpy as np

from felrec.abilities import Found, Selection
from felrec.data.events import Rows
from felrec.errors import ConfigError
from felrec.model.kernels.native.tables import Questions, Tables, address, copied
from felrec.recommender import Queries

_NOTHING = np.zeros(0, dtype=np.int32)
_LEVELS = {"answer_v4": 4, "answer_v3": 3, "answer": 1}  # builds, and the x86-64 level of processor that each one needs
_I4, _I8, _F8 = np.dtype("i4"), np.dtype("i8"), np.dtype("f8")


def builds() -> dict[str, ctypes.CDLL]:
    """The builds of the kernels that this processor can run, by name, the fastest first."""
    portable = _build("answer")
    if portable is None:
        return {}
    level = portable.felrec_processor_level()
    names = [name for name, needed in _LEVELS.items() if needed <= level]
    return {name: kernels for name in names if (kernels := _build(name)) is not None}


@cache
def library() -> ctypes.CDLL | None:
    """The fastest build for this processor, or None where installing felrec found no C compiler.

    The environment may name another one: `FELREC_KERNELS=answer`, or `none`.
    """
    found: dict[str, ctypes.CDLL | None] = {**builds(), "none": None}
    chosen = os.environ.get("FELREC_KERNELS") or next(iter(found))
    if chosen not in found:
        raise ConfigError(f"FELREC_KERNELS={chosen}: there is no such build for this processor; use {', '.join(found)}")
    return found[chosen]


def _build(name: str) -> ctypes.CDLL | None:
    folder = Path(__file__).parent
    built = next((path for suffix in EXTENSION_SUFFIXES if (path := folder / f"{name}{suffix}").exists()), None)
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
    kernels = library()
    if kernels is None:
        return "numpy"
    lanes = kernels.felrec_lanes()
    return "c1" if lanes == 16 else f"c1-{lanes}"  # the order of sums depends on it


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
    kernels, count, catalogue = library(), len(queries), tables.catalogue
    assert kernels is not None, "ask `library` first"
    ks = [min(selection.k, catalogue) for selection in selections]
    begins = [0, *accumulate(ks)]  # of the items found for each query
    questions = _questions(queries, ks, selections, hidden)
    room = np.empty(2 * count + begins[-1], dtype=np.int64)  # numbers of items and scores, then rows, then scores
    starts = [room.ctypes.data + 8 * size for size in (0, count, 2 * count)]
    outputs = (starts[2], starts[2] + 4 * begins[-1], *starts[:2])
    if kernels.felrec_answer(ctypes.addressof(tables), ctypes.addressof(questions), *outputs):
        raise MemoryError(f"not enough memory to answer {count} queries")
    numbers, both = room[: 2 * count].tolist(), room[2 * count :]
    rows, scores = both.view(np.int32)[: begins[-1]], both.view(np.float32)[begins[-1] :]
    return [
        Found(rows[begin : begin + size], scores[begin : begin + size], scored)
        for begin, size, scored in zip(begins, numbers[:count], numbers[count:], strict=False)
    ]


def _questions(queries: Queries, ks: Sequence[int], selections: Sequence[Selection], hidden: Rows) -> Questions:
    pending, times = queries.pending, queries.pending_times
    leave_out, out_ends = _joined([selection.leave_out for selection in selections])
    candidates, candidate_ends = _joined([_candidates(selection) for selection in selections])
    starts = [
        -1 if selection.candidates is None else start
        for selection, start in zip(selections, candidate_ends, strict=False)
    ]
    return Questions(
        len(queries),
        copied(queries.users, _I4),
        copied(queries.times, _F8),
        copied(pending.values, _I4),
        None if times is None else copied(times, _F8),
        copied(pending.starts, _I8),
        copied(pending.stops, _I8),
        _numbers(ks),
        leave_out,
        _numbers(out_ends[:-1]),
        _numbers(out_ends[1:]),
        address(hidden, _I4) if len(hidden) else None,
        len(hidden),
        candidates,
        _numbers(starts),
        _numbers(candidate_ends[1:]),
    )


def _numbers(values: Sequence[int]) -> bytes:
    return array("q", values).tobytes()


def _candidates(selection: Selection) -> Rows:
    return _NOTHING if selection.candidates is None else selection.candidates


def _joined(lists: Sequence[Rows]) -> tuple[bytes, list[int]]:
    """Lists one after another, and where each begins and the last ends."""
    return b"".join([copied(rows, _I4) for rows in lists]), [0, *accumulate(map(len, lists))]
