"""The loss of a batch and its gradients by the compiled kernels, a few queries at a time."""

from __future__ import annotations

import ctypes
import threading
from ctypes import Structure, c_float, c_void_p
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from felrec.data.events import Rows
from felrec.model.kernels.native.library import asked, library
from felrec.model.kernels.native.tables import Tables, address
from felrec.model.kernels.parallel import in_parallel
from felrec.peers import ALONE, Peers
from felrec.recommender import Queries

_TOGETHER = 32  # queries at a time, as in learning.c
_FEATURES = 37
_OF_QUERIES = ("losses", "users", "wanted")  # one row for each query

Floats = NDArray[np.float32]


class _PairGradients(Structure):
    _fields_ = tuple((name, c_void_p) for name in ("first", "first_bias", "second", "second_bias", "last", "last_bias"))


class _Learning(Structure):
    _fields_ = (
        *((name, c_void_p) for name in ("users", "wanted", "targets", "item_scores", "last_bias", "transposed")),
        ("weight", c_float),
        ("least", c_float),
        *((name, c_void_p) for name in ("losses", "of_users", "of_wanted", "of_items", "of_log_trust")),
        ("of_pairs", _PairGradients),
        *((name, c_void_p) for name in ("scores", "features", "gains", "back", "rows")),
    )


@dataclass(frozen=True)
class Inputs:
    """What the loss of queries depends on, beside the tables."""

    users: Floats  # (B, D)
    wanted: Floats  # (B, D) by the sequence
    targets: Rows  # (B,)
    item_scores: Floats  # (members, C)
    last_bias: Floats  # (members,) of the pair network
    transposed: Floats  # (members, outputs, inputs) its second layer
    least: float = 0  # share of a softmax below which pairs are sampled for their gradients

    def __getitem__(self, piece: slice) -> Inputs:
        of_queries = (self.users[piece], self.wanted[piece], self.targets[piece])
        return Inputs(*of_queries, self.item_scores, self.last_bias, self.transposed, self.least)


@dataclass(frozen=True)
class Gradients:
    """The loss, and its gradients in the layout of what they are of."""

    losses: Floats  # (B,) in all the loss
    users: Floats  # (B, D)
    wanted: Floats  # (B, D)
    items: Floats  # (members, C)
    log_trust: Floats  # (C,)
    first: Floats  # of the pair network, as in tables.h
    first_bias: Floats
    second: Floats
    second_bias: Floats
    last: Floats
    last_bias: Floats

    @classmethod
    def zeros(cls, queries: int, widths: tuple[int, int], catalogue: int, members: int, hidden: int) -> Gradients:
        """For this many queries."""
        of_pairs = ((_FEATURES, members * hidden), (members, hidden), (members, hidden, hidden), (members, hidden))
        shapes = ((queries,), *((queries, width) for width in widths), (members, catalogue), (catalogue,), *of_pairs)
        return cls(*(np.zeros(shape, np.float32) for shape in (*shapes, (members, hidden), (members,))))


def learn(tables: Tables, queries: Queries, inputs: Inputs, peers: Peers = ALONE) -> Gradients:
    """The mean over queries and members of the softmax loss.

    Sums are in the order of queries, whatever the threads and processes.
    """
    starts = range(0, len(queries), _TOGETHER)
    weight = 1 / (len(queries) * tables.network.members)
    widths = (inputs.users.shape[1], inputs.wanted.shape[1])
    shape = (widths, tables.catalogue, tables.network.members, tables.network.hidden)
    found = [Gradients.zeros(len(inputs.targets[start : start + _TOGETHER]), *shape) for start in starts]

    def work(number: int) -> None:
        piece = slice(starts[number], starts[number] + _TOGETHER)
        _learn_piece(tables, queries[piece], inputs[piece], weight, found[number])

    list(in_parallel(work, peers.share(range(len(found)))))
    peers.complete([list(vars(one).values()) for one in found])
    fields = {name: [getattr(one, name) for one in found] for name in vars(found[0])}
    return Gradients(
        **{name: np.concatenate(parts) if name in _OF_QUERIES else sum(parts) for name, parts in fields.items()}
    )


def _learn_piece(tables: Tables, queries: Queries, inputs: Inputs, weight: float, found: Gradients) -> None:
    kernels, count = library(), len(queries)
    assert kernels is not None, "ask `library` first"
    everything = np.full(count, -1)
    questions = asked(
        queries,
        candidate_starts=address(everything, "i8"),
    )
    members = tables.network.members
    pairs = _TOGETHER * kernels.felrec_most_pairs(ctypes.addressof(tables), ctypes.addressof(questions))
    of_pairs = (found.first, found.first_bias, found.second, found.second_bias, found.last, found.last_bias)
    learning = _Learning(
        address(inputs.users, "f4"),
        address(inputs.wanted, "f4"),
        address(inputs.targets, "i4"),
        *(address(array, "f4") for array in (inputs.item_scores, inputs.last_bias, inputs.transposed)),
        weight,
        inputs.least,
        *(array.ctypes.data for array in (found.losses, found.users, found.wanted, found.items, found.log_trust)),
        _PairGradients(*(array.ctypes.data for array in of_pairs)),
        _scratch("scores", tables.catalogue * _TOGETHER),
        _scratch("features", pairs * _FEATURES),
        _scratch("gains", pairs * members),
        _scratch("back", pairs * members),
        _scratch("rows", pairs),
    )
    if kernels.felrec_learn(*map(ctypes.addressof, (tables, questions, learning))):
        raise MemoryError(f"not enough memory to learn from {count} events")


_kept = threading.local()


def _scratch(name: str, size: int) -> int:
    """The address of memory for so many numbers. Each thread keeps its own: fresh pages would take longer than sums."""
    kept: dict[str, NDArray[Any]] = vars(_kept)
    if name not in kept or len(kept[name]) < size:
        kept[name] = np.empty(size + size // 4 + 1, dtype=np.float32)
    return kept[name].ctypes.data
