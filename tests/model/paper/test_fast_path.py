"""What is fast (sorted chunks, trimmed histories, one write per entity) equals what is plain, event by event.

The plain version keeps histories in dictionaries of lists, pads every sequence to the full length, encodes one
sequence at a time and compares with the whole queue in one table of logits.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from felrec.data.batches import TimeBatch
from felrec.data.events import Events
from felrec.model.paper.felrec import FELRec, FELRecSettings
from felrec.model.paper.objectives import Contrast

N = 64
SETTINGS: dict[str, Any] = {"width": 16, "layers": 2, "heads": 2, "feed_forward": 32, "dropout": 0.0, "queue_size": 40}


@pytest.fixture(autouse=True)
def _double_precision() -> Iterator[None]:
    """Batch statistics of a few rows magnify rounding; in double precision any real difference stands out."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


class Plain:
    """The same weights, used the slow way."""

    def __init__(self, model: FELRec) -> None:
        self.model = model
        self.items_of: dict[int, list[int]] = {}
        self.users_of: dict[int, list[int]] = {}
        self.user_vectors: dict[int, Tensor] = {}
        self.item_vectors: dict[int, Tensor] = {}

    def encode(self, history: list[int], vectors: dict[int, Tensor], kind: int) -> Tensor:
        slots = torch.zeros(N, 16)
        recent = history[-N:]
        for place, row in enumerate(recent, start=N - len(recent)):
            slots[place] = vectors.get(row, torch.zeros(16))
        shown = torch.arange(N) >= N - len(recent) - (len(recent) < N)
        return self.model.encoder(slots[None], shown[None], kind)[0]  # type: ignore[no-any-return]

    def loss(self, batch: Events, trained: np.ndarray[Any, Any]) -> Tensor:
        users, items = [], []
        for user, item in zip(batch.users.tolist(), batch.items.tolist(), strict=True):
            users.append(self.encode(self.items_of.get(user, []), self.item_vectors, 0))
            items.append(self.encode(self.users_of.get(item, []), self.user_vectors, 1))
            self.items_of.setdefault(user, []).append(item)
            self.users_of.setdefault(item, []).append(user)
        for i, (user, item) in enumerate(zip(batch.users.tolist(), batch.items.tolist(), strict=True)):
            self.user_vectors[user], self.item_vectors[item] = users[i].detach(), items[i].detach()
        chosen = np.flatnonzero(trained).tolist()
        return self.compare(torch.stack([users[i] for i in chosen]), torch.stack([items[i] for i in chosen]))

    def compare(self, users: Tensor, items: Tensor) -> Tensor:
        objective = self.model.objective
        if not isinstance(objective, Contrast):
            return objective(users, items)  # type: ignore[no-any-return]
        users, items = objective.user_projection(users), objective.item_projection(items)
        users, items = F.normalize(users, dim=1), F.normalize(items, dim=1)
        loss = torch.zeros(())
        for query, key, queue in ((users, items, objective.item_queue), (items, users, objective.user_queue)):
            logits = torch.cat([(query * key.detach()).sum(dim=1, keepdim=True), query @ queue.keys.T], dim=1)
            loss = loss + F.cross_entropy(logits / 0.07, torch.zeros(len(query), dtype=torch.long))
        objective.user_queue.push(users)
        objective.item_queue.push(items)
        return loss


def batch_with_histories(lengths: list[int]) -> tuple[Events, Events]:
    """Earlier events that give user i and item i a history of lengths[i], and a batch over all of them."""
    pairs = [(owner, 1_000 + k) for owner, length in enumerate(lengths) for k in range(length)]
    pairs += [(1_000 + k, owner) for owner, length in enumerate(lengths) for k in range(length)]
    pairs += [(500, 500), (501, 501)]  # a batch needs two events
    earlier = np.random.default_rng(0).permutation(np.array(pairs))
    repeated = [*range(len(lengths)), 0, 0, len(lengths) - 1]
    return (
        Events.of(earlier[:, 0], earlier[:, 1], np.arange(len(earlier))),
        Events.of(repeated, repeated[::-1], np.arange(len(repeated))),
    )


@pytest.mark.parametrize("share", [1.0, 0.5])
@pytest.mark.parametrize("variant", ["q", "p"])
@pytest.mark.parametrize("lengths", [[0, 0], [1, 1], [63, 63], [64, 64], [65, 65], [0, 1, 2, 40, 63, 64, 65, 100]])
def test_losses_gradients_and_vectors_agree(lengths: list[int], variant: Literal["q", "p"], share: float) -> None:
    fast, slow = (FELRec(FELRecSettings(**SETTINGS), variant).train() for _ in range(2))
    plain = Plain(slow)
    earlier, batch = batch_with_histories(lengths)
    generator = np.random.default_rng(1)
    for block in (earlier, batch, batch):
        trained = generator.random(len(block)) < share
        trained[:2] = True
        fast_loss = fast.loss(TimeBatch(block, None if share == 1 else trained))
        slow_loss = plain.loss(block, trained)
        assert torch.allclose(fast_loss, slow_loss, atol=1e-5, rtol=1e-5)
    fast.zero_grad()
    slow.zero_grad()
    fast_loss.backward()  # type: ignore[no-untyped-call]
    slow_loss.backward()  # type: ignore[no-untyped-call]
    for (name, one), other in zip(fast.named_parameters(), slow.parameters(), strict=True):
        assert one.grad is not None and other.grad is not None, name  # noqa: PT018
        assert torch.allclose(one.grad, other.grad, atol=1e-5, rtol=1e-4), name
    for row, vector in plain.user_vectors.items():
        assert torch.allclose(fast.user_cache.read(np.array([row]))[0], vector, atol=1e-5)
    for row, vector in plain.item_vectors.items():
        assert torch.allclose(fast.item_cache.read(np.array([row]))[0], vector, atol=1e-5)
