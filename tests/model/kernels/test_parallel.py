"""Pieces on several cores: the same results, gradients and random numbers as one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from felrec.data.batches import TimeBatch
from felrec.data.events import Events
from felrec.model.kernels import sequences
from felrec.model.kernels.parallel import in_parallel
from felrec.model.paper.felrec import FELRec, FELRecSettings

SMALL: dict[str, Any] = {
    "width": 16,
    "layers": 2,
    "heads": 2,
    "feed_forward": 32,
    "history_length": 6,
    "queue_size": 50,
}


@pytest.fixture(params=[1, 3])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def events(count: int, seed: int) -> Events:
    generator = np.random.default_rng(seed)
    return Events.of(generator.integers(0, 30, count), generator.integers(0, 20, count), np.arange(count))


def learned(short: bool) -> dict[str, torch.Tensor]:
    """Loss, gradients, vectors and dropout after two steps, of a model with dropout, in bfloat16 or float32."""
    model = FELRec(FELRecSettings(**SMALL), seed=3).train()
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=short):
        model.loss(TimeBatch(events(80, 0)))
        loss = model.loss(TimeBatch(events(80, 1), np.arange(80) % 2 == 0))
    loss.backward()  # type: ignore[no-untyped-call]
    gradients = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    return {"loss": loss.detach(), **gradients, **model.state(), **model.memory()}


@pytest.mark.parametrize("short", [False, True])
def test_results_do_not_depend_on_the_number_of_threads(monkeypatch: pytest.MonkeyPatch, short: bool) -> None:
    monkeypatch.setattr(sequences, "_TOKENS", 20)  # many chunks
    before, found = torch.get_num_threads(), []
    for threads in (1, 3, 3):
        torch.set_num_threads(threads)
        found.append(learned(short))
    torch.set_num_threads(before)
    assert len(found[0]) > 20
    atol, rtol = (0.005, 0.1) if short else (1e-4, 1e-5)  # the heads use all threads; in bfloat16 a bit may flip
    torch.testing.assert_close(found[1], found[0], atol=atol, rtol=rtol)
    for name in ("user_cache", "item_cache"):
        torch.testing.assert_close(found[1][name], found[0][name], atol=0, rtol=0)
    torch.testing.assert_close(found[2], found[1], atol=0, rtol=0)  # and they repeat exactly


def test_the_pieces_come_back_in_order_and_do_as_the_caller_did(threads: int) -> None:
    with torch.no_grad():
        found = list(in_parallel(lambda piece: (piece, torch.is_grad_enabled()), range(9)))
    assert found == [(i, False) for i in range(9)]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        product = list(in_parallel(lambda piece: torch.ones(2, 2) @ torch.ones(2, 2), [0, 1]))
    assert [one.dtype for one in product] == [torch.bfloat16] * 2
    assert list(in_parallel(str, [])) == []
    assert torch.get_num_threads() == threads


def test_an_error_in_a_piece_reaches_the_caller(threads: int) -> None:
    with pytest.raises(ZeroDivisionError):
        list(in_parallel(lambda piece: 1 // piece, [1, 0, 1]))
