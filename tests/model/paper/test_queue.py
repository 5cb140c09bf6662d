from __future__ import annotations

from collections import deque

import pytest
import torch

from felrec.model.paper.queue import Queue


@pytest.mark.parametrize("size", [1, 5, 8])
@pytest.mark.parametrize("batches", [[3, 3, 3], [8, 1], [5, 17, 2], [1] * 12])
def test_any_batch_size_fits_any_queue_size(size: int, batches: list[int]) -> None:
    queue = Queue(size, 1, torch.Generator().manual_seed(0))
    newest: deque[float] = deque(queue.keys.flatten().tolist(), maxlen=size)
    value = 0.0
    for batch in batches:
        values = [value + i + 1 for i in range(batch)]
        value += batch
        queue.push(torch.tensor(values)[:, None])
        newest.extend(values)
    oldest_first = torch.roll(queue.keys.flatten(), -queue.next)
    assert oldest_first.tolist() == list(newest)


def test_it_starts_as_random_unit_vectors() -> None:
    queue = Queue(100, 16, torch.Generator().manual_seed(0))
    assert torch.allclose(queue.keys.norm(dim=1), torch.ones(100))
    assert (queue.keys @ queue.keys.T).fill_diagonal_(0).abs().max() < 0.95
    assert torch.equal(queue.keys, Queue(100, 16, torch.Generator().manual_seed(0)).keys)
