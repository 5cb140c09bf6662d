"""The processes that train one model together: which part of a batch is whose, and what they exchange.

Every process keeps all weights and the whole state, and takes the same steps. The expensive parts of a step are divided
into pieces: each process computes a share of them, and they exchange the results. So all have the same loss and the
same gradients.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, Self, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, distributed

from felrec.errors import TrainingError


class Sliceable(Protocol):
    """A list or an array of pieces of work."""

    def __getitem__(self, part: slice, /) -> Self:
        """Some of the pieces."""
        ...


S = TypeVar("S", bound=Sliceable)


class Peers:
    """This process among those that train together; by default it is alone.

    >>> Peers().share("abcde"), Peers(rank=1, size=2).share("abcde")
    ('abcde', 'bd')
    >>> Peers(rank=1, size=2).in_order("abcde")
    ['ace', 'bd']
    """

    def __init__(self, rank: int = 0, size: int = 1) -> None:
        self.rank, self.size = rank, size

    @property
    def leads(self) -> bool:
        """Whether it is the process that writes files and speaks for all."""
        return self.rank == 0

    def share(self, pieces: S) -> S:
        """The pieces of work that are for this process: every `size`-th, because neighbours take about as long."""
        return self.in_order(pieces)[self.rank]

    def in_order(self, pieces: S) -> list[S]:
        """The shares of all processes."""
        return [pieces[rank :: self.size] for rank in range(self.size)]

    def gather(self, own: Tensor, counts: Sequence[int]) -> Tensor:
        """The rows (sum of counts, D) of all processes, one after another; differentiable.

        `counts` are the numbers of rows of each process. All go on to compute the same from all rows, so all know the
        gradient of these, and each takes that of its own rows.
        """
        if self.size == 1 or not any(counts):
            return own
        gathered: Tensor = _Gather.apply(self, own, counts)  # type: ignore[no-untyped-call]
        return gathered

    def complete(self, pieces: Sequence[Sequence[NDArray[Any]]]) -> None:
        """Fill in the arrays of all pieces of work; those of its `share` this process has computed.

        So sums can be taken over pieces in their order, and have the same bits as if one process had computed all.
        """
        if self.size == 1:
            return
        shares = [[array for arrays in share for array in arrays] for share in self.in_order(pieces)]
        own = torch.from_numpy(np.concatenate([array.ravel() for array in shares[self.rank]] or [_NOTHING]))
        content = self.gather(own, [sum(array.size for array in share) for share in shares]).numpy()
        start = 0
        for array in (array for share in shares for array in share):
            array[...] = content[start : start + array.size].reshape(array.shape)
            start += array.size

    def sum(self, own: Sequence[Tensor]) -> list[Tensor]:
        """The sums of tensors over all processes; the same to the last bit on each."""
        if self.size == 1:
            return list(own)
        joined = torch.cat([one.reshape(-1) for one in own])
        with _connected():
            distributed.all_reduce(joined)
        parts = torch.split(joined, [one.numel() for one in own])
        return [part.view_as(one) for part, one in zip(parts, own, strict=True)]

    def from_leader(self, data: bytes) -> bytes:
        """What the leading process gives, at least one byte; on others the argument is ignored."""
        if self.size == 1:
            return data
        with _connected():
            length = torch.tensor(len(data))
            distributed.broadcast(length, 0)
            content = torch.empty(int(length), dtype=torch.uint8)
            if self.leads:
                content = torch.frombuffer(bytearray(data), dtype=torch.uint8)
            distributed.broadcast(content, 0)
        return content.numpy().tobytes()


ALONE = Peers()
_NOTHING = np.zeros(0, dtype=np.float32)


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, peers: Peers, own: Tensor, counts: Sequence[int]) -> Tensor:
        ctx.own = slice(sum(counts[: peers.rank]), sum(counts[: peers.rank + 1]))
        padded = own.new_zeros(max(counts), *own.shape[1:])  # the shares that are exchanged must have one size
        padded[: len(own)] = own
        shares = [torch.empty_like(padded) for _ in counts]
        with _connected():
            distributed.all_gather(shares, padded)
        return torch.cat([share[:count] for share, count in zip(shares, counts, strict=True)])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, Tensor, None]:
        return None, gradients[0][ctx.own], None


@contextmanager
def _connected() -> Iterator[None]:
    """Say in one line that another process is gone."""
    try:
        yield
    except RuntimeError as error:
        raise TrainingError(
            "another process of this training ended or cannot be reached; see what it said, then use --resume"
        ) from error
