"""FELRec, which is fast (sorted chunks, trimmed histories, one write per row), against the plain reference."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
import pytest
import torch

from felrec.config import TrainingSettings
from felrec.data.batches import TimeBatch
from felrec.data.events import Events
from felrec.model.paper.cache import Cache
from felrec.model.paper.felrec import FELRec, FELRecSettings
from felrec.model.paper.objectives import Contrast
from felrec.model.paper.reference import Contrast as ReferenceContrast
from felrec.model.paper.reference import Event, ReferenceFELRec, Sizes
from felrec.recommender import Queries

Variant = Literal["q", "p"]
SIZES = Sizes(width=16, layers=2, heads=2, feed_forward=32, dropout=0.0, queue_size=40)
both_variants = pytest.mark.parametrize("variant", ["q", "p"])


@pytest.fixture(autouse=True)
def _double_precision() -> Iterator[None]:
    """Batch statistics of a few rows magnify rounding; in double precision any real difference stands out."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def same_weights(variant: Variant) -> tuple[FELRec, ReferenceFELRec]:
    fast, plain = FELRec(FELRecSettings(**SIZES._asdict()), variant), ReferenceFELRec(variant, SIZES)
    plain.load_state_dict(fast.state_dict())
    if isinstance(fast.objective, Contrast) and isinstance(plain.objective, ReferenceContrast):
        plain.objective.user_queue.extend(fast.objective.user_queue.keys)
        plain.objective.item_queue.extend(fast.objective.item_queue.keys)
    return fast.train(), plain.train()


def pairs(events: Events) -> list[Event]:
    return list(zip(events.users.tolist(), events.items.tolist(), strict=True))


def assert_same_state(fast: FELRec, plain: ReferenceFELRec) -> None:
    def same(cache: Cache, vectors: dict[int, torch.Tensor]) -> None:
        assert np.flatnonzero(cache.snapshot().any(dim=1)).tolist() == sorted(vectors)
        read = cache.read(np.array(list(vectors)))
        torch.testing.assert_close(read, torch.stack(list(vectors.values())), atol=1e-5, rtol=1e-5)

    same(fast.users.cache, plain.user_cache)
    same(fast.items.cache, plain.item_cache)
    if isinstance(fast.objective, Contrast) and isinstance(plain.objective, ReferenceContrast):
        for ours, queue in (
            (fast.objective.user_queue, plain.objective.user_queue),
            (fast.objective.item_queue, plain.objective.item_queue),
        ):
            torch.testing.assert_close(ours.keys.roll(-ours.next, 0), torch.stack(list(queue)), atol=1e-5, rtol=1e-5)


def batch_with_histories(lengths: list[int]) -> tuple[Events, Events]:
    """Earlier events that give user i and item i a history of lengths[i], and a batch over all of them."""
    earlier = [(owner, 1_000 + k) for owner, length in enumerate(lengths) for k in range(length)]
    earlier += [(1_000 + k, owner) for owner, length in enumerate(lengths) for k in range(length)]
    earlier += [(500, 500), (501, 501)]  # a batch needs two events
    shuffled = np.random.default_rng(0).permutation(np.array(earlier))
    repeated = [*range(len(lengths)), 0, 0, len(lengths) - 1]
    return (
        Events.of(shuffled[:, 0], shuffled[:, 1], np.arange(len(shuffled))),
        Events.of(repeated, repeated[::-1], np.arange(len(repeated))),
    )


@pytest.mark.parametrize(("variant", "parameters"), [("q", 479_488), ("p", 580_096)])
def test_parameter_counts_are_the_published_ones(variant: Variant, parameters: int) -> None:
    assert sum(parameter.numel() for parameter in ReferenceFELRec(variant).parameters()) == parameters


@pytest.mark.parametrize("share", [1.0, 0.5])
@both_variants
@pytest.mark.parametrize("lengths", [[0, 0], [1, 1], [63, 63], [64, 64], [65, 65], [0, 1, 2, 40, 63, 64, 65, 100]])
def test_losses_gradients_caches_and_queues_agree(lengths: list[int], variant: Variant, share: float) -> None:
    fast, plain = same_weights(variant)
    earlier, batch = batch_with_histories(lengths)
    generator = np.random.default_rng(1)
    for block in (earlier, batch, batch):
        trained = generator.random(len(block)) < share
        trained[:2] = True
        users, items = plain.encode_events(pairs(block))
        plain_loss = plain.objective(users[trained], items[trained])
        fast_loss = fast.loss(TimeBatch(block, None if share == 1 else trained))
        torch.testing.assert_close(fast_loss, plain_loss, atol=1e-5, rtol=1e-5)
        assert_same_state(fast, plain)
    fast_loss.backward()  # type: ignore[no-untyped-call]
    plain_loss.backward()
    gradients = {name: parameter.grad for name, parameter in plain.named_parameters()}
    for name, parameter in fast.named_parameters():
        torch.testing.assert_close(parameter.grad, gradients.pop(name), atol=1e-5, rtol=1e-4)
    assert not gradients


@both_variants
def test_weights_agree_after_training_steps(variant: Variant) -> None:
    fast, plain = same_weights(variant)
    settings = TrainingSettings(batch_size=20)
    optimisers = [torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9) for model in (fast, plain)]
    batches = fast.batches(random_events(60), settings, 0)
    for step in range(len(batches)):
        loss = fast.loss(batches[step])
        optimisers[0].zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_value_(fast.parameters(), settings.clip)
        optimisers[0].step()
        assert plain.train_step(pairs(batches[step].events), optimisers[1]) == pytest.approx(float(loss.detach()))
    torch.testing.assert_close(fast.weights(), plain.state_dict(), atol=1e-5, rtol=1e-4)


def random_events(count: int) -> Events:
    generator = np.random.default_rng(3)
    return Events.of(generator.integers(0, 12, count), generator.integers(0, 9, count), np.arange(count))


@both_variants
def test_scores_agree_before_each_event_and_caches_after_observing(variant: Variant) -> None:
    fast, plain = same_weights(variant)
    candidates = np.array([0, 1, 500, 7, 90, 1_000], dtype=np.int32)
    for block in batch_with_histories([0, 1, 63, 64, 65]):
        asked = range(len(block))[-40:]
        scores = fast.score(Queries.before_each(block)[np.array(asked)], candidates)
        for row, event in enumerate(asked):
            pending = block.items[:event][block.users[:event] == block.users[event]].tolist()
            expected = torch.tensor(plain.score(int(block.users[event]), pending, candidates.tolist()))
            torch.testing.assert_close(scores[row], expected, atol=1e-5, rtol=1e-5)
        fast.observe(block)
        plain.observe(pairs(block))
        assert_same_state(fast, plain)
