"""Process pieces of work on several cores, each piece in one thread.

Torch divides every operation among its threads, which then wait for each other; with matrices of 128 columns that
costs a fifth of the time. A thread that computes a whole piece does not wait, and the result of a piece does not
depend on the number of cores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from threading import Barrier
from typing import Any, TypeVar

import torch
from torch import Tensor

from felrec.peers import ALONE, Peers

T = TypeVar("T")
R = TypeVar("R")


def in_parallel(work: Callable[[T], R], pieces: Sequence[T]) -> Iterator[R]:
    """The results of `work` for all pieces, in order, on as many cores as torch may use."""
    threads = torch.get_num_threads()
    if threads == 1:
        return map(work, pieces)
    gradients, autocast = torch.is_grad_enabled(), torch.is_autocast_enabled("cpu")
    short = torch.get_autocast_dtype("cpu")

    def alike(piece: T) -> R:  # these modes are per thread: copy those of the caller
        with torch.set_grad_enabled(gradients), torch.autocast("cpu", enabled=autocast, dtype=short):
            return work(piece)

    return _workers(threads).map(alike, pieces)


def differentiable_in_parallel(
    work: Callable[[T], Tensor],
    pieces: Sequence[T],
    parameters: Sequence[Tensor],
    used: Sequence[Tensor],
    peers: Peers = ALONE,
) -> Tensor:
    """The concatenated results (b, D) of all pieces; forward and backward passes run in parallel.

    `parameters` are all tensors that need gradients, and `used` those that `work` reads: the same, or copies of them
    in another precision. Gradients are summed over the pieces of all processes. That is done in double precision, so
    that training is reproducible: the order of the pieces, and who computed them, changes no bit.
    """
    joined: Tensor = _Pieces.apply(work, pieces, used, peers, *parameters)  # type: ignore[no-untyped-call]
    return joined


class _Pieces(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        work: Callable[[T], Tensor],
        pieces: Sequence[T],
        used: Sequence[Tensor],
        peers: Peers,
        *parameters: Tensor,
    ) -> Tensor:
        with torch.enable_grad():
            results = list(in_parallel(work, pieces))
        ctx.results, ctx.used, ctx.peers, ctx.parameters = results, used, peers, parameters
        return torch.cat([parameters[0].new_zeros(0), *(result.detach() for result in results)])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Any, ...]:
        shares = torch.split(gradients[0], [len(result) for result in ctx.results]) if ctx.results else ()

        def of_piece(piece: tuple[Tensor, Tensor]) -> tuple[Tensor, ...]:
            found: tuple[Tensor, ...] = torch.autograd.grad(piece[0], ctx.used, piece[1], materialize_grads=True)
            return found

        sums = [torch.zeros_like(parameter, dtype=torch.float64) for parameter in ctx.parameters]
        # Summed one by one: all of them together would be hundreds of megabytes.
        for of_parameters in in_parallel(of_piece, list(zip(ctx.results, shares, strict=True))):
            for total, one in zip(sums, of_parameters, strict=True):
                total.add_(one)
        del ctx.results
        totals = zip(ctx.peers.sum(sums), ctx.parameters, strict=True)
        return None, None, None, None, *(total.to(parameter.dtype) for total, parameter in totals)


@cache
def _workers(threads: int) -> ThreadPoolExecutor:
    workers = ThreadPoolExecutor(threads, "felrec", initializer=torch.set_num_threads, initargs=(1,))
    started = Barrier(threads)  # start all threads now: each changes settings of torch, which is unsafe later
    list(workers.map(lambda _: started.wait(), range(threads)))
    return workers
