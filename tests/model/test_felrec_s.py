"""The parts of FELRec-S, each against what it is there for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from felrec.config import FELRecSSettings
from felrec.data.batches import TimeBatch
from felrec.data.events import Events
from felrec.data.synthetic import synthetic_log
from felrec.data.tables.histories import Pending
from felrec.evaluation.protocols import replay
from felrec.model.evidence import NEXT_WINDOW, Catalogue, gather
from felrec.model.felrec_s import FELRecS
from felrec.model.horizons import HALF_LIVES, Horizons
from felrec.model.offer import Offer
from felrec.model.signals.seeds import SeededCache, seeds
from felrec.recommender import ErasureContext, Forgetting, Queries

SMALL = FELRecSSettings(width=16, heads=2, feed_forward=32, history_length=8, own_items=16, near_items=16, next_items=8)
EVENTS = synthetic_log(1_500, n_users=60, n_items=50, seed=3).log.events
ITEMS = np.unique(EVENTS.items)


def model(**settings: Any) -> FELRecS:
    return FELRecS(SMALL.model_copy(update=settings))


def best(made: FELRecS, user: int, items: int, time: float = 1e6, pending: list[int] | None = None) -> int:
    asked = Queries(np.array([user], dtype=np.int32), np.array([time]), Pending.of([pending or []]))
    return int(made.score(asked, np.arange(items, dtype=np.int32))[0].argmax())


def test_the_number_of_parameters_is_that_of_the_docs_and_does_not_grow() -> None:
    made = FELRecS()
    assert made.parameter_count() == 42_415
    made.observe(EVENTS)
    assert made.parameter_count() == 42_415


def test_seeds_are_fixed_unit_vectors_that_hardly_overlap() -> None:
    vectors = seeds(np.arange(300), 128, 1)
    assert torch.allclose(vectors.norm(dim=1), torch.ones(300))
    overlap = vectors @ vectors.T - torch.eye(300)
    assert overlap.abs().max() < 0.5
    assert overlap.std() == pytest.approx(128**-0.5, rel=0.1)
    assert (vectors != seeds(np.arange(300), 128, 0)).any()
    # These are part of the format: a store is served by another machine, and by a later version.
    assert (seeds(np.array([0, 1]), 8, 0) > 0).int().tolist() == [[1, 1, 1, 1, 0, 1, 0, 1], [1, 1, 1, 1, 0, 0, 1, 0]]


def test_an_absent_entry_is_its_seed_before_and_after_its_neighbours_are_written() -> None:
    cache = SeededCache(16, side=1)
    expected = seeds(np.array([3]), 16, 1)
    assert torch.equal(cache.read(np.array([3])), expected)
    cache.write(np.array([9]), torch.ones(1, 16))
    assert torch.equal(cache.read(np.array([3])), expected)
    again = SeededCache(16, side=1)
    again.restore(cache.snapshot())
    assert torch.equal(again.read(np.array([3, 9, 12])), cache.read(np.array([3, 9, 12])))
    assert not cache.read(np.array([-1])).any()


def test_horizons_agree_with_counting() -> None:
    horizons, items = Horizons(), EVENTS.items[:400]
    for start in range(0, 400, 37):
        horizons.apply_change(horizons.change(items[start : start + 37]))
    asked = np.array([0, 3, 49, 7_000], dtype=np.int32)
    age = np.arange(len(items) - 1, -1, -1)
    faded = np.exp2(-age[:, None] / HALF_LIVES)
    expected = np.stack([faded[items == item].sum(axis=0) for item in asked])
    assert np.allclose(horizons.counts(asked), expected, rtol=1e-4)
    firsts = [int(np.flatnonzero(items == item)[0]) if (items == item).any() else None for item in asked]
    assert horizons.ages(asked).tolist() == [0 if first is None else len(items) - first for first in firsts]


def test_the_moment_keeps_up_with_blocks_and_waits_for_single_events() -> None:
    horizons = Horizons()
    for start in range(0, 8_192, 256):
        horizons.apply_change(horizons.change(np.arange(256, dtype=np.int32)))
        assert horizons.moment == horizons.events == start + 256
    before = horizons.counts(np.array([3, 5]))
    for event in range(255):
        horizons.apply_change(horizons.change(np.array([3], dtype=np.int32)))
        assert (horizons.events, horizons.moment) == (8_193 + event, 8_192)
    touched, untouched = horizons.counts(np.array([3, 5]))
    assert (touched > before[0]).all()
    assert (untouched == before[1]).all()
    horizons.apply_change(horizons.change(np.array([3], dtype=np.int32)))
    assert horizons.moment == horizons.events
    assert (horizons.counts(np.array([5]))[0] < before[1]).all()


def test_what_is_kept_between_two_events_is_what_would_be_computed_anew() -> None:
    made = model()
    before = dict(made.named_parameters())["popularity.networks.0.2.weight"]
    torch.nn.init.normal_(before)  # it would say nothing
    log = synthetic_log(6_000, n_users=200, n_items=3_000, seed=5).log.events
    replay(made, log[:5_000])
    every, waited = np.arange(3_000, dtype=np.int32), 0
    asked = Queries.now(np.array([3, 5, 70_000]), 1e6)
    made.score(asked, every)
    for nth in range(5_000, 5_080):
        made.observe(log[nth : nth + 1])
        waited += made.counts.horizons.moment < made.counts.horizons.events
        again = model()
        again.load_weights(made.weights())
        again.load_state(made.state())
        assert torch.equal(made.score(asked, every), again.score(asked, every))
    assert waited > 50


def test_new_items_do_not_disturb_who_asks_for_some_old_ones() -> None:
    made = model()
    made.observe(Events.of([0, 0, 1, 1, 2, 2], [0, 1, 0, 2, 1, 2], range(6)))
    some = np.arange(3, dtype=np.int32)
    for nth in range(4):
        before = made.score(Queries.now(np.array([0]), 100.0), some)
        assert torch.isfinite(before).all()
        made.observe(Events.of([0, 0], [3 + 2 * nth, 4 + 2 * nth], [10 + nth, 10 + nth]))  # they meet 0 and 1


def test_an_event_of_the_same_block_is_as_old_as_it_is() -> None:
    block = Events.of([5, 6, 5, 5], [1, 2, 1, 3], [0.0, 600.0, 3_600.0, 7_200.0])
    asked = Queries.before_each(block)
    assert asked.pending_times is not None
    assert asked.pending_times[asked.pending.starts[3] : asked.pending.stops[3]].tolist() == [0.0, 3_600.0]
    made = model()
    made.observe(Events.of([9, 9], [1, 3], [0, 0]))
    among = Catalogue.of(np.array([1, 3], dtype=np.int32), made.counts.items)
    together = gather(asked[3:], made.counts, among)
    apart = model()
    apart.observe(Events.of([9, 9], [1, 3], [0, 0]))
    apart.observe(block[:3])
    one_by_one = gather(Queries.now(np.array([5]), 7_200.0), apart.counts, among)
    minutes = 5  # of the features, the one that says how long ago
    assert together.features[0, minutes] == one_by_one.features[0, minutes] > 0


def test_untrained_it_follows_what_is_popular_now() -> None:
    made = model()
    made.observe(Events.of(range(1_000), [0] * 500 + [1] * 400 + [2] * 100, range(1_000)))
    scores = made.score(Queries.now(np.array([999]), 400.0), np.arange(3, dtype=np.int32))[0]
    assert scores.argmax() == 1  # 0 has more events, but longer ago; 2 has newer ones, but few


def trained(events: Events, steps: int = 150, **settings: Any) -> FELRecS:
    made = model(**settings)
    optimiser = torch.optim.AdamW(made.parameters(), lr=0.02)
    blocks = [events[start : start + 100] for start in range(0, len(events), 100)]
    for step in range(steps):
        if step % len(blocks) == 0:
            made.begin_epoch()
        optimiser.zero_grad()
        made.loss(TimeBatch(blocks[step % len(blocks)])).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    made.reset()
    replay(made, events)
    return made


def test_it_learns_to_repeat_where_people_repeat() -> None:
    rng = np.random.default_rng(0)
    users = rng.integers(0, 40, 2_000)
    made = trained(Events.of(users, users, np.arange(2_000) * 60))  # each has one item, and stays with it
    assert [best(made, user, 40) for user in range(8)] == list(range(8))
    assert best(made, 777, 40, pending=[31]) == 31  # also of what is not observed yet


def test_it_learns_what_follows_what() -> None:
    rng = np.random.default_rng(0)
    first = rng.integers(0, 15, 1_000) * 2
    users = np.repeat(np.arange(1_000), 2)  # everyone takes an even item, then the next odd one
    made = trained(Events.of(users, np.stack([first, first + 1], axis=1).ravel(), np.arange(2_000) * 60))
    assert [best(made, 5_000, 30, pending=[item]) for item in range(0, 30, 2)] == list(range(1, 30, 2))


@pytest.mark.parametrize(
    "off", ["own_items", "near_items", "next_items", "cosine", "seeded", "gate", "adaptive", "domain", "item_loss"]
)
def test_every_part_can_be_left_out(off: str) -> None:
    made = trained(
        EVENTS, steps=10, **{off: 0 if off in {"own_items", "near_items", "next_items", "item_loss"} else False}
    )
    scores = made.score(Queries.before_each(EVENTS[-20:]), ITEMS)
    assert torch.isfinite(scores).all()
    whole = trained(EVENTS, steps=10).score(Queries.before_each(EVENTS[-20:]), ITEMS)
    assert not torch.equal(scores, whole)


def test_members_learn_apart_and_are_heard_together() -> None:
    made = trained(EVENTS, steps=10, members=3)
    asked = Queries.before_each(EVENTS[-20:])
    together = made.score(asked, ITEMS)
    alone = []
    for member in range(3):
        one = model()
        own, others = f".networks.{member}.", tuple(f".networks.{n}." for n in range(3) if n != member)
        weights = {
            name.replace(own, ".networks.0."): value
            for name, value in made.weights().items()
            if not any(other in name for other in others)
        }
        one.load_weights(weights)
        one.load_state(made.state())
        alone.append(one.score(asked, ITEMS))
    assert not torch.allclose(alone[0], alone[1], atol=0.01)
    # Evidence is told what all members expect of an item, so the mean is not exactly that of three lone ones.
    torch.testing.assert_close(torch.stack(alone).mean(dim=0), together, atol=0.2, rtol=0.05)


def test_twins_share_weights_and_nothing_else() -> None:
    made = model()
    twin = made.twin()
    made.observe(EVENTS)
    assert twin.state()["item_count"].numel() == 0
    with torch.no_grad():
        made.trend.add_(1.0)
        made.encoder.types.add_(1.0)
    assert all(torch.equal(weight, twin.weights()[name]) for name, weight in made.weights().items())


def test_a_large_catalogue_bounds_what_a_loss_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    made = model()
    made.observe(EVENTS)
    asked: list[int] = []
    scores = made._scores

    def counted(queries: Queries, offer: Offer) -> list[torch.Tensor]:
        asked.append(len(queries))
        return scores(queries, offer)

    monkeypatch.setattr(made, "_scores", counted)
    made.loss(TimeBatch(EVENTS[:100]))
    monkeypatch.setattr("felrec.model.felrec_s._CELLS", 500)
    made.loss(TimeBatch(EVENTS[:100]))
    assert asked == [100, 500 // len(ITEMS)]


def tallied(state: dict[str, torch.Tensor], name: str) -> dict[tuple[int, int], float]:
    """Counts by pair."""
    lines = zip(state[f"{name}_other"].tolist(), state[f"{name}_count"].tolist(), strict=True)
    return {(row, x): n for row, line in enumerate(lines) for x, n in zip(*line, strict=True) if x >= 0}


def test_forgetting_a_user_leaves_what_the_others_did() -> None:
    """As if the user had never come: exactly in histories, in who is near whom, and in the vectors of nobody else."""
    rng = np.random.default_rng(5)
    users = rng.integers(0, 30, 600)
    mine = np.cumsum(users == 7)
    items = np.where(users == 7, 40 + mine % 6, rng.integers(0, 43, 600))  # over and over, and some that only 7 had
    events = Events.of(users, items, np.arange(600) * 60)
    kept = users != 7
    others = Events.of(users[kept], items[kept], events.times[kept])
    made, never = model(near_items=64, next_items=64), model(near_items=64, next_items=64)
    replay(made, events)
    replay(never, others)
    touched, taken = np.unique(items[~kept], return_counts=True)
    left = np.array([(others.items == item).sum() for item in touched])

    def newest(length: int) -> Pending:
        return Pending.of([others.users[others.items == item][-length:].tolist() for item in touched])

    assert isinstance(made, Forgetting)
    made.apply_change(
        made.forget(7, ErasureContext(touched.astype(np.int32), taken, left, items[~kept].astype(np.int32), newest))
    )
    after, expected = made.state(), never.state()
    gone = touched[left == 0]
    assert len(gone)
    for name in ("user_ring", "user_count", "own_other"):
        assert not (after[name][7] > 0).any()
    for item in range(45):
        rows, mask = made.counts.items.recent(np.array([item]))
        assert rows[mask].tolist() == others.users[others.items == item][-8:].tolist()
    assert torch.equal(made.item_cache.read(gone), seeds(gone, 16, 1))
    assert not (after["trend_mass"][gone] > 0).any()
    for name in ("near", "next"):
        found, right = tallied(after, name), tallied(expected, name)
        assert found.keys() == right.keys()
        assert all(abs(found[pair] - n) < 0.3 + 0.1 * n for pair, n in right.items())  # what had faded is not known
    made.observe(others[:50])  # and it goes on


def test_training_does_not_make_all_items_alike() -> None:
    made = trained(EVENTS, steps=150)
    vectors = made.item_vectors(ITEMS)
    assert (vectors @ vectors.T).mean() < 0.7


@pytest.mark.parametrize("settings", [{}, {"cosine": False}, {"gate": False}, {"rates": True, "members": 2}])
def test_bfloat16_trains(settings: dict[str, Any]) -> None:
    made = model(**settings)
    made.observe(EVENTS[:1_000])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = made.loss(TimeBatch(EVENTS[1_000:1_100], None))
    loss.backward()  # type: ignore[no-untyped-call]
    assert loss.isfinite()
    assert any(parameter.grad is not None and parameter.grad.any() for parameter in made.parameters())


def test_a_few_items_are_enough_to_learn_from() -> None:
    made, few = model(), synthetic_log(300, n_users=20, n_items=5, tastes=2, seed=1).log.events
    made.observe(few[:200])
    assert made.loss(TimeBatch(few[200:], None)).item() > 0.1


def test_the_gate_trusts_an_item_by_its_events() -> None:
    made, ungated = model(), model(gate=False)
    made.observe(EVENTS)
    with torch.no_grad():
        made.confidence.copy_(torch.tensor([-1.0, 0.5]))
    ungated.load_weights(made.weights())
    ungated.load_state(made.state())
    asked, log_events = Queries.now(np.array([3]), 1e6), torch.linspace(0, 8, len(ITEMS))
    with torch.no_grad():
        trusted = made._match(asked, ITEMS, log_events) / ungated._match(asked, ITEMS, log_events)
    torch.testing.assert_close(trusted[0], torch.sigmoid(0.5 * log_events - 1.0), atol=1e-4, rtol=1e-3)


def test_an_own_item_is_as_many_events_back_as_it_is() -> None:
    block = Events.of([5, 5, 5, 5], [1, 3, 2, 2], [0.0, 60.0, 120.0, 180.0])
    made, apart = model(), model()
    for one in (made, apart):
        one.observe(Events.of([9, 9, 9], [1, 2, 3], [0, 0, 0]))
    among = Catalogue.of(np.array([1, 2, 3], dtype=np.int32), made.counts.items)
    together = gather(Queries.before_each(block)[3:], made.counts, among)
    apart.observe(block[:3])
    one_by_one = gather(Queries.now(np.array([5]), 180.0), apart.counts, among)
    back = 2  # of the features, the one that says how many events ago: 1 three, 3 two, 2 just now
    for found in (together, one_by_one):
        np.testing.assert_allclose(found.features[:, back], np.log1p([3, 1, 2]), rtol=1e-6)


def test_what_is_near_is_looked_up_from_the_last_ten_and_what_follows_from_the_last_two() -> None:
    made = model(history_length=16)
    made.observe(Events.of(np.repeat(np.arange(12), 2), [x for n in range(12) for x in (n, 20 + n)], range(24)))
    asked = Queries(np.array([99], dtype=np.int32), np.array([1e6]), Pending.of([list(range(12))]))
    among = Catalogue.of(np.arange(20, 32, dtype=np.int32), made.counts.items)
    found = gather(asked, made.counts, among)
    near, after = found.features[:, 9] > 0, found.features[:, 9 + 7] > 0
    assert found.column[near].tolist() == list(range(2, 12))
    assert found.column[after].tolist() == list(range(12 - NEXT_WINDOW, 12))


def test_an_item_that_follows_itself_is_near_itself_once() -> None:
    made = model()
    made.observe(Events.of([0, 0], [4, 4], [0, 1]))
    assert tallied(made.state(), "near") == {(4, 4): 1.0}


def test_an_item_that_was_forgotten_is_new_when_it_comes_again() -> None:
    horizons = Horizons()
    horizons.apply_change(horizons.change(np.array([0, 1, 1, 0], dtype=np.int32)))
    horizons.apply_change(horizons.forget(np.array([1], dtype=np.int32), np.array([2]), np.array([0])))
    assert horizons.ages(np.array([0, 1], dtype=np.int32)).tolist() == [4, 0]
    horizons.apply_change(horizons.change(np.array([1], dtype=np.int32)))
    assert horizons.ages(np.array([1], dtype=np.int32)).tolist() == [1]


def test_shares_of_a_young_log_are_of_what_there_is() -> None:
    horizons = Horizons()
    horizons.apply_change(horizons.change(np.array([0, 0, 0, 1], dtype=np.int32)))
    shares = horizons.shares(horizons.counts(np.arange(2, dtype=np.int32)))
    np.testing.assert_allclose(shares.sum(axis=0), 1, atol=0.05)
    np.testing.assert_allclose(shares[0], 0.75, atol=0.05)


def test_the_horizon_that_foretells_best_is_trusted_most() -> None:
    """What was just taken is taken again, then something else: only the shortest memory knows it."""
    made = model()
    replay(made, Events.of(np.arange(4_000), np.arange(4_000) // 20, np.arange(4_000)))
    weights = made.counts.domain.horizon_weights
    assert weights.argmax() == 0
    assert weights[0] > 0.5
    assert made.counts.domain.features[-1] == np.float32(np.log(HALF_LIVES[0]) / 10)


def test_other_weights_are_heard_at_once() -> None:
    made, other = model(), model()
    with torch.no_grad():
        other.trend.mul_(-1)
    made.observe(EVENTS)
    asked, every = Queries.now(np.array([3]), 1e6), np.arange(made.counts.items.owners, dtype=np.int32)
    before = made.score(asked, every)
    made.load_weights(other.weights())
    other.observe(EVENTS)
    after = made.score(asked, every)
    assert not torch.allclose(before, after)
    torch.testing.assert_close(after, other.score(asked, every))


def test_the_loss_of_items_is_weighed() -> None:
    losses = []
    for weight in (0.0, 0.5, 1.0):
        made = model(item_loss=weight)
        made.observe(EVENTS[:1_000])
        losses.append(made.loss(TimeBatch(EVENTS[1_000:1_100])).item())
    none, half, whole = losses
    assert whole > half > none
    assert abs((whole - none) - 2 * (half - none)) < 1e-4


def test_users_are_told_from_the_most_recent_ones_also_after_a_resume() -> None:
    made, again = model(), model()
    for start in range(0, 2_900, 100):
        made.loss(TimeBatch(Events.of(np.arange(start, start + 100), np.arange(100) % 7, np.arange(100))))
    recent = made.memory()["recent_users"].tolist()
    assert recent == list(range(2_900 - 2_048, 2_900))
    again.load_memory(made.memory())
    assert again.memory()["recent_users"].tolist() == recent
