"""Histories for the encoder, sorted by length and divided into chunks, so that little padding is computed."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from felrec.data.events import Rows
from felrec.model.kernels.dropout import Masks
from felrec.model.kernels.parallel import differentiable_in_parallel, in_parallel
from felrec.model.paper.cache import Cache
from felrec.model.paper.encoder import with_empty_slot
from felrec.peers import ALONE, Peers

_TOKENS = 2048  # positions per chunk on a CPU, so that activations stay in its caches


class Sequences:
    """Histories (B, N) of users or items; their vectors are read from the cache of the other side."""

    def __init__(self, cache: Cache, rows: Rows, mask: NDArray[np.bool_], kind: int) -> None:
        self.cache, self.rows, self.mask, self.kind = cache, rows, mask, kind
        self.visible = with_empty_slot(mask)
        self.lengths = self.visible.sum(axis=1)
        self.order = np.argsort(self.lengths, kind="stable")

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def chunks(self) -> list[NDArray[np.int64]]:
        """Indices of sequences of similar length, shortest first; chunks of short sequences have more of them."""
        if self.cache.device.type != "cpu":
            return [self.order] if len(self) else []
        chunks, start, ascending = [], 0, self.lengths[self.order]
        while start < len(self):
            guess = min(len(self), start + max(1, _TOKENS // ascending[start]))  # at most: later ones are longer
            stop = min(len(self), start + max(1, _TOKENS // ascending[guess - 1]))
            chunks.append(self.order[start:stop])
            start = stop
        return chunks

    @property
    def largest_chunk(self) -> int:
        """The number of positions of the largest chunk, including padding."""
        return max((len(chunk) * int(self.lengths[chunk[-1]]) for chunk in self.chunks), default=0)

    def read(self, chunk: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        """Vectors (b, n, D) and mask (b, n) of a chunk, n being its longest history."""
        longest = self.lengths[chunk[-1]]
        shown = torch.from_numpy(self.visible[chunk, -longest:]).to(self.cache.device)
        return self.cache.read(self.rows[chunk, -longest:]), shown

    def __getitem__(self, chosen: NDArray[np.int64]) -> Sequences:
        return Sequences(self.cache, self.rows[chosen], self.mask[chosen], self.kind)


class Piece(NamedTuple):
    """A chunk of a side, its dropout, and where its vectors belong among those of all sides."""

    side: Sequences
    chunk: NDArray[np.int64]
    dropout: Masks | None
    places: NDArray[np.int64]


def encode(
    encoder: nn.Module,
    sides: tuple[Sequences, ...],
    dropout: Masks | None = None,
    widest: int = 0,
    used: nn.Module | None = None,
    peers: Peers = ALONE,
) -> tuple[Tensor, ...]:
    """Vectors (B, D) of each side's histories. On a CPU they are encoded in chunks, one chunk per core at a time.

    Dropout needs masks for at most `widest` values per position. `used` is a copy of the encoder in another precision,
    which computes in its place. Of several processes each encodes a share of the chunks. On a CPU chunks and masks are
    those of a single process, so the vectors are too.
    """
    used = encoder if used is None else used
    if dropout is not None:
        dropout.reserve(max(side.largest_chunk for side in sides) * widest)
    starts = np.cumsum([0, *map(len, sides)])
    pieces = [
        Piece(side, chunk, dropout and dropout.fork(), start + chunk)
        for side, start in zip(sides, starts, strict=False)
        for chunk in _divided(side, peers.size)
    ]

    def work(piece: Piece) -> Tensor:
        encoded: Tensor = used(*piece.side.read(piece.chunk), piece.side.kind, piece.dropout)
        return encoded

    cache, own = sides[0].cache, peers.share(pieces)
    if torch.is_grad_enabled() and (cache.device.type == "cpu" or peers.size > 1):
        weights, read = list(encoder.parameters()), list(used.parameters())
        encoded = differentiable_in_parallel(work, own, weights, read, peers).view(-1, cache.width)
    else:
        results = in_parallel(work, own) if cache.device.type == "cpu" else map(work, own)
        encoded = torch.cat([torch.zeros(0, cache.width, device=cache.device), *results])
    shares = peers.in_order(pieces)
    encoded = peers.gather(encoded, [sum(len(piece.chunk) for piece in share) for share in shares])
    places = np.concatenate([np.zeros(0, np.int64), *(piece.places for share in shares for piece in share)])
    ordered = encoded[torch.from_numpy(np.argsort(places)).to(cache.device)]
    return torch.split(ordered, [len(side) for side in sides])


def _divided(side: Sequences, processes: int) -> list[NDArray[np.int64]]:
    """The chunks of a side; on a GPU, where there is one large chunk, a part of it for each process."""
    if side.cache.device.type == "cpu":
        return side.chunks
    parts = [chunk[first::processes] for chunk in side.chunks for first in range(processes)]
    return [part for part in parts if len(part)]
