"""The recipe `ordinary`: what each of its settings changes."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import pytest
import torch

from felrec.abilities import ErasureContext
from felrec.data.batches import TimeBatch
from felrec.data.events import Events
from felrec.data.pending import Pending
from felrec.errors import ConfigError
from felrec.model.paper import served_score
from felrec.model.paper.directions import direction
from felrec.model.paper.encoder import ITEM_SEQUENCE
from felrec.model.paper.felrec import FELREC_P, FELREC_Q, FELRec
from felrec.model.paper.popularity_prior import PopularityPrior
from felrec.model.paper.residual import ResidualEncoder, start_as_identity
from felrec.model.paper.served_score import Before, ServedScore
from felrec.model.signals.seeds import seeds
from felrec.recommender import Queries
from felrec.registry import model_kind

SIZES: dict[str, Any] = {"width": 16, "heads": 2, "feed_forward": 16, "history_length": 4, "queue_size": 20}
CPU = torch.device("cpu")


def ordinary(variant: Literal["q", "p"] = "q", **changes: Any) -> FELRec:
    kind = FELREC_Q if variant == "q" else FELREC_P
    settings, _ = kind.divide({"recipe": "ordinary", **SIZES, **changes})
    model = kind.build(settings, 0, "cpu", None)  # type: ignore[arg-type]
    assert isinstance(model, FELRec)
    return model


def random_events(count: int, users: int = 12, items: int = 9, seed: int = 0) -> Events:
    generator = np.random.default_rng(seed)
    return Events.of(generator.integers(0, users, count), generator.integers(0, items, count), np.arange(count))


def test_the_papers_recipe_has_none_of_it() -> None:
    model = FELRec()
    assert model.prior is None
    assert model.served is None
    assert not [name for name in model.state_dict() if name.startswith(("prior", "served"))]


def test_before_training_a_user_is_nearest_to_their_own_items() -> None:
    """Seeds and parts that start as the identity pass on who had what; without seeds all users look alike."""
    users = np.repeat(np.arange(20), 6)
    events = Events.of(users, users * 3 + np.tile([0, 1, 2, 0, 1, 2], 20), np.arange(120))
    own = {}
    for cache, share in (("seeded", 1.0), ("zero", 0.0)):
        model = ordinary(cache=cache, seed_share=share, prior_half_lives=[])
        for block in events.blocks(10):
            model.observe(block)
        best = model.score(Queries.now(np.arange(20), 0.0), np.arange(60, dtype=np.int32)).topk(3, dim=1).indices
        own[cache] = float((best // 3 == torch.arange(20)[:, None]).float().mean())
    assert own["seeded"] > 0.9
    assert own["zero"] < 0.2


def test_the_residual_encoder_starts_as_the_mean_of_what_is_there() -> None:
    encoder = ResidualEncoder(8, 1, 2, 16, 5)
    start_as_identity(encoder)
    vectors = torch.randn(2, 4, 8, generator=torch.Generator().manual_seed(0))
    vectors[0, :2] = 0  # padding and the empty slot
    mask = torch.tensor([[False, True, True, True], [True] * 4])
    encoded = encoder(vectors, mask, ITEM_SEQUENCE)
    assert torch.allclose(encoded[0], vectors[0, 2:].mean(dim=0), atol=1e-6)
    assert torch.allclose(encoded[1], vectors[1].mean(dim=0), atol=1e-6)
    torch.nn.init.ones_(encoder.output.bias)
    assert torch.allclose(encoder(vectors, mask, ITEM_SEQUENCE), encoded + 1, atol=1e-6)  # the published part is there


def test_a_residual_head_starts_as_the_identity() -> None:
    x = torch.randn(5, 16, generator=torch.Generator().manual_seed(0))
    for variant in ("q", "p"):
        residual, published = (ordinary(variant, projection=kind).objective for kind in ("residual", "mlp"))
        assert torch.equal(residual.project_users(x), x)
        assert torch.equal(residual.project_items(x), x)
        assert published.project_items(x).shape != x.shape or not torch.equal(published.project_items(x), x)


def test_vectors_are_cached_with_unit_length_and_items_keep_their_seed() -> None:
    model, rows = ordinary(), np.array([3, 7], dtype=np.int32)
    encoded = torch.randn(2, 16, generator=torch.Generator().manual_seed(0)) * 5
    assert torch.allclose(model.users.finished(rows, encoded), direction(encoded))
    expected = direction(direction(encoded) + seeds(rows, 16, 1))
    assert torch.allclose(model.items.finished(rows, encoded), expected)
    plain = ordinary(written="encoded", seed_share=0.0)
    assert plain.items.finished(rows, encoded) is encoded


def test_the_prior_is_the_logarithm_of_decayed_counts() -> None:
    prior, items = PopularityPrior([2.0, 8.0], CPU), np.array([4, 1, 4, 4, 2, 1], dtype=np.int32)
    prior.apply_change(prior.change(items[:4]))
    prior.apply_change(prior.change(items[4:]))
    counts = {h: sum(2.0 ** -((5 - i) / h) for i, item in enumerate(items) if item == 4) for h in (2.0, 8.0)}
    expected = sum(0.5 * math.log(count + 0.1) for count in counts.values())
    found = prior(np.array([4, 3], dtype=np.int32)).tolist()
    assert found[0] == pytest.approx(expected, abs=1e-5)
    assert found[1] == -math.inf


def test_the_prior_forgets_a_user() -> None:
    model = ordinary()
    model.observe(Events.of([0, 1, 1, 2], [5, 5, 6, 6], [0, 1, 2, 3]))
    assert model.prior is not None
    before = model.prior(np.array([5, 6], dtype=np.int32)).tolist()
    gone = np.array([6], dtype=np.int32)
    left = ErasureContext(gone, np.array([1]), np.array([1]), gone, lambda n: Pending.of([[2]]))
    model.apply_change(model.forget(1, left))
    after = model.prior(np.array([5, 6], dtype=np.int32)).tolist()
    assert after[0] == before[0]
    assert after[1] < before[1]


def naive_loss(
    score: ServedScore, users: torch.Tensor, items: torch.Tensor, catalogue: list[int], targets: Any
) -> float:
    losses: list[float] = []
    for user, target in zip(users, targets, strict=True):
        if target in catalogue:
            scores = [score.scale.item() * (user @ item).item() for item in items]
            losses.append(math.log(sum(map(math.exp, scores))) - scores[catalogue.index(target)])
    return sum(losses) / len(losses)


def test_the_loss_is_the_softmax_over_the_catalogue() -> None:
    generator = torch.Generator().manual_seed(0)
    users, items = (direction(torch.randn(count, 8, generator=generator)) for count in (4, 3))
    before = Before(np.array([2, 5, 9], dtype=np.int32), items, torch.zeros(3), users)
    score, targets = ServedScore(0.2, None), np.array([5, 7, 2, 9], dtype=np.int32)  # 7 is not in the catalogue
    expected = naive_loss(score, users, items, [2, 5, 9], targets.tolist())
    assert score.loss(users, items, before, targets).item() == pytest.approx(expected, abs=1e-5)
    assert score.loss(users[:1], items, before, np.array([7], dtype=np.int32)).item() == 0


def test_events_are_compared_with_what_was_cached_before_them() -> None:
    model = ordinary(item_loss=0.0, dropout=0.0).train()
    model.observe(random_events(40))
    events, catalogue = random_events(30, seed=1), np.arange(9, dtype=np.int32)

    def served() -> float:
        scores = model.score(Queries.before_each(events), catalogue)
        return torch.nn.functional.cross_entropy(scores, torch.from_numpy(events.items.astype(np.int64))).item()

    expected = served()
    assert model.loss(TimeBatch(events)).item() == pytest.approx(expected, abs=0.02)  # directions are soft in training
    assert abs(served() - expected) > 0.2  # the batch has been written


def test_of_a_large_catalogue_a_sample_stands_for_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served_score, "_MOST", 40)
    model = ordinary()
    model.observe(Events.of(np.arange(100) % 7, np.arange(100), np.arange(100)))
    before = Before.of(model.users, model.items, Events.of([1, 2, 3], [50, 60, 300], [0, 0, 0]))
    assert {50, 60} <= set(before.candidates.tolist())
    assert len(before.candidates) == 40
    weights = before.stand_for.exp()
    assert float(weights[np.searchsorted(before.candidates, 50)]) == 1
    assert float(weights.sum()) == pytest.approx(100, rel=1e-5)


@pytest.mark.parametrize("variant", ["q", "p"])
@pytest.mark.parametrize("negatives", ["catalogue", "queue"])
def test_everything_that_is_scored_is_learned(variant: Literal["q", "p"], negatives: str) -> None:
    model = ordinary(variant, negatives=negatives).train()
    model.observe(random_events(40))
    for step in range(2):  # in the first step gradients stop at layers that begin at zero
        model.zero_grad()
        model.loss(TimeBatch(random_events(32, seed=step))).backward()  # type: ignore[no-untyped-call]
        with torch.no_grad():
            for parameter in model.parameters():
                assert parameter.grad is not None
                parameter.sub_(0.1 * parameter.grad)
    dead = [name for name, p in model.named_parameters() if p.grad is not None and not p.grad.any()]
    assert dead == []


def test_with_the_published_loss_the_softmax_fits_only_the_scalars_of_the_score() -> None:
    gradients = []
    for half_lives in ([], [100.0]):
        model = ordinary(negatives="queue", prior_half_lives=half_lives, normalisation="layer").train()
        model.observe(random_events(40))
        model.loss(TimeBatch(random_events(32, seed=1))).backward()  # type: ignore[no-untyped-call]
        gradients.append(
            {name: p.grad for name, p in model.named_parameters() if not name.startswith(("prior", "served"))}
        )
    assert all(torch.allclose(gradients[0][name], grad) for name, grad in gradients[1].items())  # type: ignore[arg-type]


def test_an_item_without_events_scores_below_everything() -> None:
    model = ordinary(prior_half_lives=[], negatives="queue")
    model.observe(random_events(40))
    scores = model.score(Queries.now(np.array([0, 99]), 0.0), np.array([0, 50], dtype=np.int32))
    assert torch.isfinite(scores[:, 0]).all()
    assert (scores[:, 1] == -torch.inf).all()


def test_a_recipe_is_a_set_of_settings_that_others_override() -> None:
    settings, training = FELREC_Q.divide({"recipe": "ordinary", "width": 32, "lr": 0.5})
    assert (settings.width, settings.cache, training.lr, training.optimizer) == (32, "seeded", 0.5, "adamw")  # type: ignore[attr-defined]
    assert FELREC_Q.divide({})[0].cache == "zero"  # type: ignore[attr-defined]
    with pytest.raises(ConfigError, match="no recipe 'best'; it has: ordinary"):
        FELREC_P.divide({"recipe": "best"})
    with pytest.raises(ConfigError, match="popularity has no recipe 'ordinary'; it has none"):
        model_kind("popularity").divide({"recipe": "ordinary"})


def test_half_lives_are_written_with_commas() -> None:
    settings, _ = FELREC_Q.divide({"prior_half_lives": "30,3000"})
    assert settings.prior_half_lives == [30, 3000]  # type: ignore[attr-defined]
    with pytest.raises(ConfigError, match="greater than 0"):
        FELREC_Q.divide({"prior_half_lives": "30,0"})


def test_training_leaves_the_cache_that_serving_would() -> None:
    """With `training_writes=served` a reset changes nothing but the age of the weights."""
    events = random_events(60)
    for writes, same in (("served", True), ("published", False)):
        model = ordinary(training_writes=writes).train()
        for block in events.blocks(20):
            model.loss(TimeBatch(block))
        learned = model.state()
        model.reset()
        for block in events.blocks(20):
            model.observe(block)
        served = model.state()
        assert torch.equal(learned["item_cache"], served["item_cache"]) is same
        assert torch.equal(learned["prior_100_mass"], served["prior_100_mass"])
