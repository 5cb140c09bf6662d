"""FELRec: parameter counts, ablations, and what is written into the cache when."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest
import torch
from torch.nn import functional as F  # noqa: N812

from felrec.data.batches import TimeBatch
from felrec.data.events import Events
from felrec.model.paper.felrec import FELRec, FELRecSettings
from felrec.recommender import Queries

SMALL: dict[str, Any] = {"width": 8, "layers": 1, "heads": 2, "feed_forward": 16, "history_length": 4, "queue_size": 20}


def small(variant: Literal["q", "p"] = "q", **changes: Any) -> FELRec:
    return FELRec(FELRecSettings(**{**SMALL, **changes}), variant)


def random_events(count: int, users: int = 12, items: int = 9, seed: int = 0) -> Events:
    generator = np.random.default_rng(seed)
    return Events.of(generator.integers(0, users, count), generator.integers(0, items, count), np.arange(count))


@pytest.mark.parametrize(("variant", "parameters"), [("q", 479_488), ("p", 580_096)])
def test_parameter_counts_are_the_published_ones(variant: Literal["q", "p"], parameters: int) -> None:
    model = FELRec(variant=variant)
    assert model.parameter_count() == parameters
    model.observe(random_events(30))
    assert model.parameter_count() == parameters  # whatever the catalogue


@pytest.mark.parametrize(
    ("settings", "fewer"),
    [
        ({"normalisation": "layer"}, 0),
        ({"projection": "none"}, 66_560),
        ({"share_projections": True}, 33_280),
        ({"type_embedding": False}, 256),
    ],
)
def test_ablations_are_settings(settings: dict[str, Any], fewer: int) -> None:
    assert FELRec(FELRecSettings(**settings)).parameter_count() == 479_488 - fewer
    model = small(**settings)
    loss = model.train().loss(TimeBatch(random_events(32)))
    loss.backward()  # type: ignore[no-untyped-call]
    assert all(p.grad is not None and bool(p.grad.isfinite().all()) for p in model.parameters())


def test_training_writes_the_vectors_from_before_each_event_and_the_latest_wins() -> None:
    model = small(dropout=0.0).train()
    batch = Events.of([0, 0, 1], [5, 6, 5], [0, 1, 2])
    model.loss(TimeBatch(batch))
    reference = small(dropout=0.0)
    # user 0's last event saw [5]; nothing was cached then, so its slot is empty like the one before it
    slots = torch.zeros(1, 2, 8)
    expected = reference.encoder(slots, torch.ones(1, 2).bool(), 0)
    assert torch.allclose(model.users.cache.read(np.array([0])), expected, atol=1e-6)
    empty = reference.encoder(slots[:, :1], torch.ones(1, 1).bool(), 0)
    assert torch.allclose(model.users.cache.read(np.array([1])), empty, atol=1e-6)
    assert model.users.histories.recent(np.array([0]))[0].tolist() == [[-1, -1, 5, 6]]


def test_observing_encodes_from_the_cache_as_it_was_and_includes_the_block() -> None:
    model = small()
    model.observe(random_events(40))
    items_before = model.items.cache.snapshot()
    model.observe(Events.of([3], [7], [99]))
    rows, mask = model.users.histories.recent(np.array([3]))
    assert rows[0, -1] == 7
    padded = torch.cat([torch.zeros(1, 8), items_before])
    assert mask.all()
    with torch.no_grad():  # without dropout, though the model is in training mode
        expected = model.encoder(padded[rows + 1], torch.from_numpy(mask), 0)
    assert torch.allclose(model.users.cache.read(np.array([3])), expected, atol=1e-6)


def test_an_item_is_represented_right_after_its_first_event() -> None:
    model = small()
    model.observe(random_events(40))
    model.observe(Events.of([2], [50], [99]))
    assert model.item_vectors(np.array([50], dtype=np.int32)).norm().item() == pytest.approx(1)
    assert torch.isfinite(model.score(Queries.now(np.array([1]), 100), np.array([50], dtype=np.int32))).all()


def test_scores_are_cosines_of_the_fresh_user_and_the_cached_items() -> None:
    model = small()
    model.observe(random_events(60))
    rows = np.arange(12, dtype=np.int32)
    scores = model.score(Queries.now(rows, 0), np.arange(9, dtype=np.int32))
    model.masks.refresh()
    users = F.normalize(model._encode(model._of_users(rows))[0].detach(), dim=1)
    assert not torch.allclose(scores, users @ model.item_vectors(np.arange(9, dtype=np.int32)).T)  # dropout is on here
    model.eval()
    users = F.normalize(model._encode(model._of_users(rows))[0].detach(), dim=1)
    assert torch.allclose(scores, users @ model.item_vectors(np.arange(9, dtype=np.int32)).T, atol=1e-6)


def test_nearest_neighbour_scores_are_the_average_over_the_nearest_other_users() -> None:
    model = small(neighbours=3)
    model.observe(random_events(80))
    candidates = np.arange(9, dtype=np.int32)
    got = model.score(Queries.now(np.array([4]), 0), candidates)[0]
    model.eval()
    asked = F.normalize(model._encode(model._of_users(np.array([4], dtype=np.int32)))[0].detach(), dim=1)[0]
    others = [user for user in range(12) if user != 4]
    vectors = model.user_vectors(np.array(others, dtype=np.int32))
    nearest = sorted(range(len(others)), key=lambda i: -float(vectors[i] @ asked))[:3]
    scores = torch.stack([vectors[i] @ model.item_vectors(candidates).T for i in nearest])
    assert torch.allclose(got, scores.mean(dim=0), atol=1e-5)


@pytest.mark.parametrize("variant", ["q", "p"])
def test_scores_from_projections_use_the_heads(variant: Literal["q", "p"]) -> None:
    plain, projected = small(variant), small(variant, score_from="projections")
    for model in (plain, projected):
        model.observe(random_events(60))
    asked, candidates = Queries.now(np.arange(3), 0), np.arange(9, dtype=np.int32)
    assert not torch.allclose(plain.score(asked, candidates), projected.score(asked, candidates), atol=1e-3)
    projected.eval()
    with torch.no_grad():
        users = projected.objective.project_users(
            projected._encode(projected._of_users(np.arange(3, dtype=np.int32)))[0]
        )
        items = projected.objective.project_items(projected.items.cache.read(candidates))
    expected = F.normalize(users, dim=1) @ F.normalize(items, dim=1).T
    assert torch.allclose(projected.score(asked, candidates), expected, atol=1e-5)


def test_the_published_order_scores_with_the_vector_of_the_users_last_event() -> None:
    """Two events of one user in a batch get the same scores, from a history that holds the first target: the leak."""
    model = small()
    model.observe(random_events(60))
    block = Events.of([3, 3], [1, 2], [90, 91])
    scores = model.observe_then_score(block, np.arange(9, dtype=np.int32))
    assert torch.equal(scores[0], scores[1])
    again = small()
    again.observe(random_events(60))
    honest = again.score(Queries.before_each(block), np.arange(9, dtype=np.int32))
    assert not torch.allclose(honest[0], honest[1], atol=1e-4)


def test_same_seed_same_model_other_seed_other_model() -> None:
    one, two, other = FELRec(FELRecSettings(**SMALL), seed=1), FELRec(FELRecSettings(**SMALL), seed=1), small()
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))
    assert not torch.equal(one.encoder.output.weight, other.encoder.output.weight)


def test_the_global_seed_is_left_alone() -> None:
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    small().train().loss(TimeBatch(random_events(16)))
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize("batch", [2, 7, 64])
@pytest.mark.parametrize("queue_size", [1, 20, 50])
def test_any_batch_and_queue_size_train_together(batch: int, queue_size: int) -> None:
    model = small(queue_size=queue_size).train()
    for seed in range(3):
        assert model.loss(TimeBatch(random_events(batch, seed=seed))).isfinite()


def test_inference_in_bfloat16_gives_almost_the_same_vectors_and_leaves_float32_alone() -> None:
    events = random_events(60)
    long, short = small(width=32), small(width=32, inference_precision="bfloat16")
    for model in (long, short):
        model.observe(events)
    exact, near = long.state()["user_cache"], short.state()["user_cache"]
    assert near.dtype == torch.float32
    assert not torch.equal(near, exact)
    assert float(F.cosine_similarity(near, exact, dim=1).min()) > 0.999
    sequences = long.eval()._of_users(np.arange(12, dtype=np.int32))
    with torch.no_grad():
        directly = torch.cat([long.encoder(*sequences.read(chunk), sequences.kind) for chunk in sequences.chunks])
        assert torch.equal(long._encode(sequences)[0], directly[np.argsort(sequences.order)])


def test_gradients_in_bfloat16_are_almost_those_of_float32() -> None:
    found = {}
    for short in (False, True):
        model = small(width=32, history_length=8, dropout=0.0).train()
        for cache in (model.users.cache, model.items.cache):  # users must not differ by rounding alone
            cache.restore(torch.randn(12, 32, generator=torch.Generator().manual_seed(0)))
        model._append(random_events(100))
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=short):
            loss = model.loss(TimeBatch(random_events(64, seed=1)))
        loss.backward()  # type: ignore[no-untyped-call]
        found[short] = loss.item(), {name: p.grad for name, p in model.encoder.named_parameters()}
    assert found[True][0] == pytest.approx(found[False][0], rel=0.02)
    assert found[True][0] != found[False][0]
    for name, exact in found[False][1].items():
        near = found[True][1][name]
        assert exact is not None
        assert near is not None
        assert near.dtype == torch.float32
        if name not in ("output.bias", "blocks.0.feed_forward_norm.bias"):  # the heads subtract means: only rounding
            assert float(F.cosine_similarity(near.flatten(), exact.flatten(), dim=0)) > 0.9, name
