"""The encoder of FELRec-S with its gradients, by the compiled kernels."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import Structure, c_int64, c_void_p
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from felrec.model.kernels.native.library import library
from felrec.model.kernels.native.tables import address
from felrec.model.kernels.parallel import in_parallel
from felrec.model.kernels.sequences import Sequences
from felrec.model.signals.pooled_encoder import PooledEncoder, PreNormBlock
from felrec.peers import ALONE, Peers

_AT_ONCE = 32  # histories of a piece of work

Floats = NDArray[np.float32]


class _Encoding(Structure):
    _fields_ = (
        *((name, c_int64) for name in ("count", "length", "width", "heads", "feed_forward", "layers")),
        *((name, c_void_p) for name in ("weights", "transposed", "vectors", "sizes", "encoded", "back", "gradients")),
    )


def blocks_of(encoder: PooledEncoder) -> list[PreNormBlock]:
    """Its blocks, with their type."""
    return [block for block in encoder.blocks if isinstance(block, PreNormBlock)]


def encoder_parts(encoder: PooledEncoder, kind: int, *, transposed: bool = False) -> list[Tensor]:
    """All weights for a kind of histories, in the order of encoder.h; matrices as (inputs, outputs) or transposed."""

    def matrix(linear: torch.nn.Linear) -> Tensor:
        return linear.weight if transposed else linear.weight.T

    parts = [
        encoder.positions + encoder.types[kind],
        encoder.recency[kind],
        encoder.attend.weight,
        matrix(encoder.output),
    ]
    for block in blocks_of(encoder):
        parts += [block.attention_norm.weight, block.attention_norm.bias]
        parts += [matrix(block.attention.query_key_value), matrix(block.attention.output)]
        parts += [block.feed_forward_norm.weight, block.feed_forward_norm.bias]
        parts += [matrix(block.expand), block.expand.bias, matrix(block.contract), block.contract.bias]
    return parts


def encode_compiled(encoder: PooledEncoder, sequences: Sequences, peers: Peers = ALONE) -> Tensor:
    """Vectors (B, D) of histories, as `encode` returns them; differentiable."""
    weights = torch.cat([part.reshape(-1) for part in encoder_parts(encoder, sequences.kind)])
    with torch.no_grad():
        transposed = [part.reshape(-1) for part in encoder_parts(encoder, sequences.kind, transposed=True)]
        histories = _Histories(encoder, sequences, torch.cat(transposed).numpy(), peers)
    encoded: Tensor = _Encode.apply(histories, weights)  # type: ignore[no-untyped-call]
    return encoded


class _Histories:
    """What the kernels read, beside the weights."""

    def __init__(self, encoder: PooledEncoder, sequences: Sequences, transposed: Floats, peers: Peers) -> None:
        block, self._peers = blocks_of(encoder)[0], peers
        self.vectors: Floats = sequences.cache.read(sequences.rows).contiguous().numpy()  # (B, N, D)
        self.sizes = sequences.lengths.astype(np.int64)
        self._transposed = transposed
        self._shape = (block.attention.heads, block.expand.out_features, len(encoder.blocks))

    def encode(self, weights: Floats, back: Floats | None) -> tuple[Floats, Floats]:
        """Vectors (B, D), and the gradients of the weights from those of the vectors; summed in the order of pieces."""
        count, _, width = self.vectors.shape
        pieces = [slice(start, start + _AT_ONCE) for start in range(0, count, _AT_ONCE)]
        encoded = np.empty((count, width), dtype=np.float32)
        gradients = [np.zeros(0 if back is None else len(weights), dtype=np.float32) for _ in pieces]

        def work(number: int) -> None:
            self._encode_piece(pieces[number], weights, back, encoded[pieces[number]], gradients[number])

        list(in_parallel(work, self._peers.share(range(len(pieces)))))
        results = [encoded[piece] for piece in pieces] if back is None else gradients
        self._peers.complete([[result] for result in results])
        return encoded, _summed(gradients)

    def _encode_piece(
        self, piece: slice, weights: Floats, back: Floats | None, encoded: Floats, gradients: Floats
    ) -> None:
        kernels, vectors, sizes = library(), self.vectors[piece], self.sizes[piece]
        assert kernels is not None, "ask `library` first"
        count, length, width = vectors.shape
        encoding = _Encoding(
            *(count, length, width, *self._shape),
            *(address(array, "f4") for array in (weights, self._transposed, vectors)),
            address(sizes, "i8"),
            address(encoded, "f4"),
            None if back is None else address(back[piece], "f4"),
            address(gradients, "f4"),
        )
        if kernels.felrec_encode_histories(ctypes.addressof(encoding)):
            raise MemoryError(f"not enough memory to encode {count} histories")


def _summed(parts: Sequence[Floats]) -> Floats:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


class _Encode(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, histories: _Histories, weights: Tensor) -> Tensor:
        ctx.histories = histories
        ctx.save_for_backward(weights)
        return torch.from_numpy(histories.encode(weights.detach().numpy(), None)[0])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, Tensor]:
        (weights,) = ctx.saved_tensors
        back = gradients[0].contiguous().numpy()
        return None, torch.from_numpy(ctx.histories.encode(weights.numpy(), back)[1])
