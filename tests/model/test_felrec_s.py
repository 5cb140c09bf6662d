"""The parts of FELRec-S, each against what it is there for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
import torch

from felrec.abilities import ErasureContext, Forgetting, Representing
from felrec.data.batches import TimeBatch
from felrec.data.events import Events, Rows
from felrec.data.pending import Pending
from felrec.data.synthetic import synthetic_log
from felrec.data.tables.trend_counts import TREND_HALF_LIVES
from felrec.evaluation.protocols import replay
from felrec.item_score_cache import ItemScoreCache
from felrec.model.felrec_s import FELRecS, felrec_s
from felrec.model.felrec_s_settings import SEQUENCE, FELRecSSettings
from felrec.model.item_scores import ItemScores
from felrec.model.signals.follows import Follows
from felrec.model.signals.pairs import Candidates, PairFeatures
from felrec.model.signals.seeds import SeededCache, seeds
from felrec.model.signals.signal_set import SIGNALS, SignalName
from felrec.recommender import Queries

WITH_VECTORS: list[SignalName] = [name for name in SIGNALS if name not in ("sequence", "hit-rates")]
SIZES = {"width": 16, "heads": 2, "feed_forward": 32, "history_length": 8}
SMALL = FELRecSSettings(**SIZES, signals=WITH_VECTORS, own_items=16, near_items=16, next_items=8)
EVENTS = synthetic_log(1_500, n_users=60, n_items=50, seed=3).log.events
ITEMS = np.unique(EVENTS.items)


def model(**settings: Any) -> FELRecS:
    return felrec_s(SMALL.model_copy(update=settings))


def without(*names: SignalName) -> list[SignalName]:
    return [name for name in WITH_VECTORS if name not in names]


def pair_features(made: FELRecS, queries: Queries, items: Iterable[int]) -> PairFeatures:
    rows = np.fromiter(items, dtype=np.int32)
    return made.pair_features(queries, Candidates.of(rows, made.signals.recent))


def best(made: FELRecS, user: int, items: int, time: float = 1e6, pending: list[int] | None = None) -> int:
    asked = Queries(np.array([user], dtype=np.int32), np.array([time]), Pending.of([pending or []]))
    return int(made.score(asked, np.arange(items, dtype=np.int32))[0].argmax())


def test_the_number_of_parameters_is_that_of_the_docs_and_does_not_grow() -> None:
    for made, parameters in (
        (felrec_s(FELRecSSettings()), 3_019),
        (felrec_s(FELRecSSettings(signals=WITH_VECTORS)), 42_639),
        (felrec_s(FELRecSSettings(signals=SEQUENCE["signals"], history_length=64)), 56_939),
    ):
        assert made.parameter_count() == parameters
        made.observe(EVENTS)
        assert made.parameter_count() == parameters


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


@pytest.mark.parametrize("members", [1, 3])
def test_kept_item_scores_are_what_would_be_computed_again(members: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made = model(members=members)
    for name, parameter in made.named_parameters():
        if name.startswith("item_network.") and name.endswith(".2.weight"):
            torch.nn.init.normal_(parameter)  # before training the network says nothing
    log = synthetic_log(6_000, n_users=200, n_items=3_000, seed=5).log.events
    replay(made, log[:5_000])
    every, between_moments = np.arange(3_000, dtype=np.int32), 0
    asked, cache = Queries.now(np.array([3, 5, 70_000]), 1e6), ItemScoreCache(made)
    computed, item_scores = list[int](), made.item_scores

    def counted(rows: Rows) -> ItemScores:
        computed.append(len(rows))
        return item_scores(rows)

    monkeypatch.setattr(made, "item_scores", counted)
    cache.score(asked, every)
    for nth in range(5_000, 5_080):
        cache.apply_change(made.change(log[nth : nth + 1]))
        assert made.signals.trend
        between_moments += made.signals.trend.counts.moment < made.signals.trend.counts.events
        kept = cache.score(asked, every)
        assert torch.equal(kept, made.score_with(asked, item_scores(every)))
    assert between_moments > 50
    assert len(computed) == 1 + 80 - between_moments  # once, and again at every moment


def test_scores_that_were_kept_are_of_the_present_weights_and_state() -> None:
    made, other = model(), model()
    cache, asked, every = ItemScoreCache(made), Queries.now(np.array([3]), 1e6), np.arange(50, dtype=np.int32)
    with torch.no_grad():
        other.item_slopes.mul_(-1)
    changes: list[Callable[[], None]] = [
        lambda: made.observe(EVENTS[:700]),
        lambda: made.observe(EVENTS[700:]),
        lambda: made.load_weights(other.weights()),
        lambda: made.load_state(other.state()),
        lambda: made.observe(EVENTS[:300]),
        made.reset,
    ]
    for change in changes:
        before = cache.score(asked, every)
        change()
        after = cache.score(asked, every)
        assert torch.equal(after, made.score(asked, every))
        assert not torch.equal(before, after)


def test_the_parts_of_a_score_add_up() -> None:
    """The item network, the pair network and the cosine; -inf for what was never seen."""
    made = trained(EVENTS, steps=20)
    asked, candidates = Queries.before_each(EVENTS[-20:]), np.append(ITEMS, 900).astype(np.int32)
    scores, items = made.score(asked, candidates), made.item_scores(candidates)
    assert scores[:, -1].tolist() == [-torch.inf] * 20
    found = made.pair_features(asked, items.candidates)
    paired = torch.zeros(scores.shape, dtype=torch.bool)
    paired[torch.from_numpy(found.pairs.query), torch.from_numpy(found.pairs.column)] = True
    with torch.no_grad():
        assert made.signals.vectors
        cosine = made.signals.vectors.match(asked, candidates, items.log_events)
    rest = (scores - items.scores[:, 0] - cosine)[:, :-1]
    assert rest[~paired[:, :-1]].abs().max() < 1e-5
    assert rest[paired[:, :-1]].abs().mean() > 0.01


@pytest.mark.parametrize(
    "names",
    [("repetition",), ("together",), ("follows",), ("ahead",), ("vectors",), ("profile",), ("trend", "profile")],
    ids=str,
)
def test_a_signal_is_left_out_by_leaving_out_its_entry(names: tuple[SignalName, ...]) -> None:
    made, whole = trained(EVENTS, steps=10, members=2, signals=without(*names)), trained(EVENTS, steps=10, members=2)
    asked = Queries.before_each(EVENTS[-20:])
    scores = made.score(asked, ITEMS)
    assert torch.isfinite(scores).all()
    assert not torch.equal(scores, whole.score(asked, ITEMS))
    assert made.parameter_count() < whole.parameter_count()
    assert isinstance(made, Representing)
    assert made.state().keys() < whole.state().keys()
    told = (*made.signals.item_names, *made.signals.pair_names)
    assert not any(feature.startswith(tuple(f"{name}." for name in names)) for feature in told)


def test_ahead_counts_the_next_six_items_of_a_user_and_not_those_before() -> None:
    made = model(signals=["ahead"], history_length=9)
    made.observe(Events.of([0] * 9, range(9), range(9)))
    counted = tallied(made.state(), "ahead")
    assert counted.keys() == {(item, later) for item in range(9) for later in range(item + 1, min(item + 7, 9))}
    found = pair_features(made, Queries.now(np.array([0]), 100.0), list(range(9)))
    assert found.pairs.column.tolist() == list(range(1, 9))  # nothing leads to the first item
    assert found["ahead.log_count"][-1] > found["ahead.log_count"][0] > 0


def test_every_feature_has_a_name_of_its_own() -> None:
    signals = model(signals=list(SIGNALS)).signals
    told = (*signals.item_names, *signals.pair_names)
    assert len(told) == len(set(told)) == 17 + 30 + 3


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
    together = pair_features(made, asked[3:], [1, 3])
    apart = model()
    apart.observe(Events.of([9, 9], [1, 3], [0, 0]))
    apart.observe(block[:3])
    one_by_one = pair_features(apart, Queries.now(np.array([5]), 7_200.0), [1, 3])
    assert together["repetition.log_minutes"][0] == one_by_one["repetition.log_minutes"][0] > 0


@pytest.mark.parametrize("size", [1, 7, 64, 256, 1_500])
def test_an_item_that_its_user_had_lately_is_not_counted_again_at_any_block_size(size: int) -> None:
    made, seen, counted = model(signals=["trend", "together"]), dict[int, list[int]](), list[bool]()
    for user, item in zip(EVENTS.users.tolist(), EVENTS.items.tolist(), strict=True):
        lately = seen.setdefault(user, [])
        counted.append(item not in lately[-SMALL.history_length :])
        lately.append(item)
    assert 100 < sum(counted) < 1_400
    replay(made, EVENTS, block=size)
    assert made.signals.trend
    counts, left = made.signals.trend.counts, np.exp2(-np.maximum(1_472 - np.arange(1, 1_501), 0)[:, None] / 100_000)
    expected = [left[(EVENTS.items == item) & counted].sum() for item in ITEMS]
    np.testing.assert_allclose(counts.decayed(ITEMS)[:, -1], expected, rtol=1e-3)


def test_a_user_who_takes_two_items_in_turns_links_them_once() -> None:
    made = model()
    made.observe(Events.of([7] * 40, [0, 1] * 20, range(40)))
    made.observe(Events.of([8, 8, 8], [0, 2, 0], range(50, 53)))  # 0 comes again, but it was linked with 2 already
    state = {name: rows.numpy() for name, rows in made.state().items()}
    for table in ("near_", "next_"):
        row = zip(state[f"{table}other"][0].tolist(), state[f"{table}count"][0].tolist(), strict=True)
        counts = {item: count for item, count in row if item > 0}
        assert counts == pytest.approx({1: 1, 2: 1}, abs=0.1), table


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


def test_members_of_an_ensemble_learn_apart_and_are_averaged() -> None:
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
    # The pair network reads the mean item score of all members, so the mean is not exactly that of three lone ones.
    torch.testing.assert_close(torch.stack(alone).mean(dim=0), together, atol=0.2, rtol=0.05)


def test_twins_share_weights_and_nothing_else() -> None:
    made = model()
    twin = made.twin()
    made.observe(EVENTS)
    assert twin.state()["item_count"].numel() == 0
    with torch.no_grad():
        made.item_slopes.add_(1.0)
        assert made.vector_network
        made.vector_network.encoder.types.add_(1.0)
    assert all(torch.equal(weight, twin.weights()[name]) for name, weight in made.weights().items())


def test_a_large_catalogue_bounds_what_a_loss_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    made = model()
    made.observe(EVENTS)
    asked: list[int] = []
    softmax_loss = made._softmax_loss

    def counted(queries: Queries, targets: Events, catalogue: Rows) -> torch.Tensor:
        asked.append(len(queries))
        return softmax_loss(queries, targets, catalogue)

    monkeypatch.setattr(made, "_softmax_loss", counted)
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
    made, never = (model(near_items=64, next_items=64, ahead_items=64) for _ in range(2))
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
        rows, mask = made.signals.recent.items.recent(np.array([item]))
        assert rows[mask].tolist() == others.users[others.items == item][-8:].tolist()
    assert made.signals.vectors
    assert torch.equal(made.signals.vectors.items.read(gone), seeds(gone, 16, 1))
    assert not (after["trend_mass"][gone] > 0).any()
    for name in ("near", "next", "ahead"):
        found, right = tallied(after, name), tallied(expected, name)
        assert found.keys() == right.keys()
        assert all(abs(found[pair] - n) < 0.3 + 0.1 * n for pair, n in right.items())  # what had faded is not known
    made.observe(others[:50])  # and it goes on


def test_training_does_not_make_all_items_alike() -> None:
    made = trained(EVENTS, steps=150)
    assert isinstance(made, Representing)
    vectors = made.item_vectors(ITEMS)
    assert (vectors @ vectors.T).mean() < 0.7


@pytest.mark.parametrize("settings", [{}, {"signals": without("vectors")}, {"signals": list(SIGNALS), "members": 2}])
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


def test_an_item_is_trusted_by_its_events() -> None:
    made = model()
    made.observe(EVENTS)
    vectors = made.signals.vectors
    assert vectors
    asked, log_events = Queries.now(np.array([3]), 1e6), torch.linspace(0, 8, len(ITEMS))
    with torch.no_grad():
        vectors.network.confidence.copy_(torch.tensor([100.0, 0.0]))
        fully = vectors.match(asked, ITEMS, log_events)
        vectors.network.confidence.copy_(torch.tensor([-1.0, 0.5]))
        trusted = vectors.match(asked, ITEMS, log_events) / fully
    torch.testing.assert_close(trusted[0], torch.sigmoid(0.5 * log_events - 1.0), atol=1e-4, rtol=1e-3)


def test_an_own_item_is_as_many_events_back_as_it_is() -> None:
    block = Events.of([5, 5, 5, 5], [1, 3, 2, 2], [0.0, 60.0, 120.0, 180.0])
    made, apart = model(), model()
    for one in (made, apart):
        one.observe(Events.of([9, 9, 9], [1, 2, 3], [0, 0, 0]))
    together = pair_features(made, Queries.before_each(block)[3:], [1, 2, 3])
    apart.observe(block[:3])
    one_by_one = pair_features(apart, Queries.now(np.array([5]), 180.0), [1, 2, 3])
    for found in (together, one_by_one):
        np.testing.assert_allclose(found["repetition.log_back"], np.log1p([3, 1, 2]), rtol=1e-6)


def test_what_is_near_is_looked_up_from_the_last_ten_and_what_follows_from_the_last_two() -> None:
    made = model(history_length=16)
    made.observe(Events.of(np.repeat(np.arange(12), 2), [x for n in range(12) for x in (n, 20 + n)], range(24)))
    asked = Queries(np.array([99], dtype=np.int32), np.array([1e6]), Pending.of([list(range(12))]))
    found = pair_features(made, asked, range(20, 32))
    near, after = found["together.log_cosine"] > 0, found["follows.log_cosine"] > 0
    assert found.pairs.column[near].tolist() == list(range(2, 12))
    assert found.pairs.column[after].tolist() == list(range(12 - Follows.reach, 12))


def test_an_item_that_follows_itself_is_near_itself_once() -> None:
    made = model()
    made.observe(Events.of([0, 0], [4, 4], [0, 1]))
    assert tallied(made.state(), "near") == {(4, 4): 1.0}


def test_the_horizon_that_foretells_best_is_trusted_most() -> None:
    """What was just taken is taken again, then something else: only the shortest memory knows it."""
    made = model()
    replay(made, Events.of(np.arange(4_000), np.arange(4_000) // 20, np.arange(4_000)))
    assert made.signals.profile
    weights = made.signals.profile.horizon_weights
    assert weights.argmax() == 0
    assert weights[0] > 0.5
    assert made.signals.profile.features[-1] == np.float32(np.log(TREND_HALF_LIVES[0]) / 10)


def test_the_loss_of_items_is_weighed() -> None:
    losses = []
    for weight in (0.0, 0.5, 1.0):
        made = model(item_loss=weight)
        made.observe(EVENTS[:1_000])
        losses.append(made.loss(TimeBatch(EVENTS[1_000:1_100])).item())
    none, half, whole = losses
    assert whole > half > none
    assert abs((whole - none) - 2 * (half - none)) < 1e-4


def test_an_item_is_new_with_few_events_that_began_lately() -> None:
    made = model()
    items = np.concatenate([np.zeros(1), np.ones(799), [2], np.full(2, 3), np.full(4, 4), np.full(16, 5)])
    replay(made, Events.of(np.arange(len(items)), items, np.arange(len(items))))
    assert made.signals.trend
    newness = made.signals.trend.newness(np.arange(6, dtype=np.int32))
    assert newness.tolist() == [0, 0, 1, 0.75, 0.5, 0]  # the first has one event, but an old one


def test_events_of_new_items_are_all_learned_from_and_several_times() -> None:
    items = np.concatenate([np.arange(400) % 4, [4]])
    block = Events.of(np.arange(6), [0, 4, 1, 4, 2, 9], np.arange(401, 407))
    trained = np.array([True, False, True, True, False, True])
    learned = {}
    for weight, catalogue in ((1.0, 9), (6.0, 9), (6.0, 5_009)):
        made = model(new_item_weight=weight)
        replay(made, Events.of(np.arange(401), items, np.arange(401)))
        some = np.delete(np.arange(catalogue + 1, dtype=np.int32), 9)
        learned[weight, catalogue] = made._learned_from(TimeBatch(block, trained), some).tolist()
    assert learned[1.0, 9] == [0, 2, 3]  # item 9 is not in the catalogue
    assert learned[6.0, 9] == [0, 1, 2, 3]  # hardly more than once in a small catalogue
    assert learned[6.0, 5_009] == [0, 1, 1, 1, 1, 2, 3, 3, 3, 3]  # six times, of which two thirds are trained on


def test_the_lift_of_a_new_item_grows_while_it_waits_and_fades_when_it_is_old() -> None:
    made = model()
    items = np.concatenate([[0], np.ones(29_999), [2], np.full(2, 3), np.ones(5_000), [4]])
    replay(made, Events.of(np.arange(len(items)), items, np.arange(len(items))))
    assert made.signals.trend
    old, popular, waiting, twice, fresh = made.signals.trend.lifted(np.arange(5, dtype=np.int32)).tolist()
    assert popular == 0
    assert old < 0.1  # its only event was the first of the log
    assert waiting == 1
    assert twice == 0.75
    assert fresh == 0  # one event cannot push it


def test_new_items_learn_scores_above_their_probability() -> None:
    """The scores of a loss are lower by the lift; the pair network reads those that are served."""
    made = model(new_item_lift=2.0)
    items = np.concatenate([np.arange(8_000) % 5_000, np.arange(5_000, 5_010), np.arange(1_000)])
    replay(made, Events.of(np.arange(len(items)), items, np.arange(len(items))))
    catalogue = np.arange(5_010, dtype=np.int32)
    lifts = made._lifts(catalogue)
    assert lifts is not None
    assert lifts.max() > 1
    plain = ItemScores.learning(catalogue, made.signals, made._item_network)
    lifted = ItemScores.learning(catalogue, made.signals, made._item_network, lifts)
    torch.testing.assert_close(lifted.scores, plain.scores - lifts[:, None])
    torch.testing.assert_close(lifted.served, plain.served)


def test_a_lift_is_smaller_in_a_small_catalogue_and_can_be_switched_off() -> None:
    made = model(new_item_lift=2.0)
    made.observe(EVENTS[:1_000])
    catalogue = np.arange(made.signals.recent.items.owners, dtype=np.int32)
    lifts = made._lifts(catalogue)
    assert lifts is not None
    assert 0 < lifts.max() <= 2 * len(catalogue) / 5_000
    assert model(new_item_lift=0.0)._lifts(catalogue) is None


def test_users_are_told_from_the_most_recent_ones_also_after_a_resume() -> None:
    made, again = model(), model()
    for start in range(0, 2_900, 100):
        made.loss(TimeBatch(Events.of(np.arange(start, start + 100), np.arange(100) % 7, np.arange(100))))
    recent = made.memory()["recent_users"].tolist()
    assert recent == list(range(2_900 - 2_048, 2_900))
    again.load_memory(made.memory())
    assert again.memory()["recent_users"].tolist() == recent


@pytest.mark.parametrize(
    ("signals", "what"),
    [
        ("profile,vectors", "needs trend"),
        ("trend,hit-rates", "hit-rates needs repetition, together or follows"),
        ("", "at least one"),
        ("trend,trend", "each name once"),
        ("trend,magic", "should be 'trend'"),
    ],
)
def test_signals_that_make_no_model_are_refused(signals: str, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        FELRecSSettings.model_validate({"signals": signals})


def test_the_order_of_signals_says_nothing() -> None:
    given: list[object] = ["vectors, trend", ["trend", "vectors"]]
    settings = [FELRecSSettings.model_validate({"signals": names}) for names in given]
    assert settings[0] == settings[1]


def test_weights_of_another_model_are_refused() -> None:
    whole, counts = model(), model(signals=without("vectors"))
    with pytest.raises(RuntimeError, match="Missing"):
        whole.load_weights(counts.weights())
    with pytest.raises(RuntimeError, match="nonsense"):
        whole.load_weights({**whole.weights(), "nonsense": torch.zeros(1)})
    vectors = {name: weight for name, weight in whole.weights().items() if name.startswith("encoder.")}
    counts.load_weights(counts.weights() | vectors)  # as in a run of format 1 that did not use them
    smaller = model(signals=["trend", "repetition"])
    with pytest.raises(RuntimeError, match="size mismatch"):
        smaller.load_weights(whole.weights())


def test_a_change_of_the_profile_may_come_in_any_order() -> None:
    made, other = model(), model()
    made.observe(EVENTS[:300])
    assert made.signals.profile
    assert other.signals.profile
    rows, means = np.array([1, 0], dtype=np.int32), made.state()["log_domain"].numpy()[::-1]
    other.signals.profile.apply_change({"log_domain": (rows, means)})
    assert torch.equal(other.state()["log_domain"], made.state()["log_domain"])
