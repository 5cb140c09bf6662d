"""One suite for every recommender: a new entry in the registry is tested here without another line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from felrec.config import TrainingSettings
from felrec.data.events import Events
from felrec.data.split import PARTITIONS, Sizes
from felrec.data.synthetic import synthetic_log
from felrec.evaluation.protocols import replay, walk
from felrec.model.signals.signal_set import SIGNALS
from felrec.recommender import Queries, Recommender, Servable, Trainable
from felrec.registry import MODELS

TINY_FELREC = {
    "width": 16,
    "layers": 1,
    "heads": 2,
    "feed_forward": 32,
    "history_length": 8,
    "queue_size": 500,
    "score_from": "projections",  # what the losses shape; the raw vectors need far more events
}
TINY: dict[str, dict[str, Any]] = {
    "felrec-s": {
        "width": 16,
        "heads": 2,
        "feed_forward": 32,
        "history_length": 8,
        "own_items": 16,
        "near_items": 16,
        "next_items": 8,
        "signals": list(SIGNALS),  # hit rates and more members are off unless asked for
        "members": 2,
    },
    "felrec-q": TINY_FELREC,
    "felrec-p": TINY_FELREC,
    "bpr-mf": {"width": 16, "negatives": 4},
    "gru4rec": {"width": 16, "layers": 2},
    "gru4rec-bptt": {"width": 16, "layers": 2, "history_length": 8},
    "sasrec": {"width": 16, "layers": 1, "heads": 2, "feed_forward": 32, "history_length": 8},
    "jodie": {"width": 32},
}
RECIPES = [f"{name} {recipe}" for name, kind in MODELS.items() for recipe in kind.recipes]  # as "felrec-q ordinary"
RATES = {"bpr-mf": 0.03, "jodie": 0.03}  # each of their vectors meets few events
EVENTS = synthetic_log(900, n_users=40, n_items=30, seed=5).log.events


def build(name: str, events: Events = EVENTS) -> Recommender:
    model, _, recipe = name.partition(" ")
    kind, users, items = MODELS[model], int(events.users.max()) + 1, int(events.items.max()) + 1
    settings, _ = kind.divide({**({"recipe": recipe} if recipe else {}), **TINY.get(model, {})})
    return kind.build(settings, 0, "cpu", Sizes(users, items, users, items))


def taught(name: str, events: Events = EVENTS, epochs: int = 1) -> Recommender:
    """A model that has learned a little, if it can, and has observed the events."""
    model = build(name, events)
    if isinstance(model, Trainable):
        optimiser = torch.optim.AdamW(model.parameters(), lr=RATES.get(name, 0.003))
        model.train()
        for epoch in range(epochs):
            batches = model.batches(events, TrainingSettings(batch_size=128), epoch)
            model.begin_epoch()
            for step in range(len(batches)):
                optimiser.zero_grad()
                model.loss(batches[step]).backward()  # type: ignore[no-untyped-call]
                optimiser.step()
        model.train(False)
        model.reset()
    replay(model, events)
    return model


def queries(block: Events) -> Queries:
    return Queries.before_each(block)


def digest(model: Recommender) -> dict[str, bytes]:
    return {name: tensor.numpy().tobytes() for name, tensor in {**model.state(), **model.weights()}.items()}


every_model = pytest.mark.parametrize("name", [*MODELS, *RECIPES])
CANDIDATES = np.arange(30, dtype=np.int32)


@every_model
def test_scoring_changes_nothing(name: str) -> None:
    model = taught(name)
    before = digest(model)
    first = model.score(queries(EVENTS[-50:]), CANDIDATES)
    assert digest(model) == before
    assert torch.equal(first, model.score(queries(EVENTS[-50:]), CANDIDATES))
    assert first.shape == (50, 30)


@every_model
def test_a_batch_of_queries_equals_single_queries(name: str) -> None:
    model, asked = taught(name), queries(EVENTS[-40:])
    together = model.score(asked, CANDIDATES)
    for i in range(0, 40, 7):
        assert torch.allclose(together[i], model.score(asked[i : i + 1], CANDIDATES)[0], atol=1e-5)


@every_model
def test_candidates_may_come_in_any_order_and_number(name: str) -> None:
    model, asked = taught(name), queries(EVENTS[-5:])
    some = np.array([17, 3, 9], dtype=np.int32)
    whole = model.score(asked, CANDIDATES)
    assert torch.allclose(model.score(asked, some), whole[:, torch.from_numpy(some.astype(np.int64))], atol=1e-5)


@every_model
def test_save_and_load_give_identical_scores(name: str) -> None:
    model, fresh = taught(name), build(name)
    fresh.load_weights(model.weights())
    fresh.load_state(model.state())
    asked = queries(EVENTS[-20:])
    assert torch.equal(model.score(asked, CANDIDATES), fresh.score(asked, CANDIDATES))
    for one in (model, fresh):
        one.observe(EVENTS[:10])
    assert digest(model) == digest(fresh)


# The others are served too, but by taking in the journal again at every start.
@pytest.mark.parametrize("name", ["felrec-s", "felrec-q", "felrec-p", *RECIPES, "popularity", "decayed-popularity"])
def test_a_change_is_known_before_it_happens(name: str) -> None:
    """What is foreseen is all that observing changes, table by table and row by row, and foreseeing changes nothing."""
    model, twin = taught(name), taught(name)
    assert isinstance(model, Servable)
    before = digest(model)
    change = model.change(EVENTS[:40])
    assert digest(model) == before
    tables = model.state()
    twin.observe(EVENTS[:40])
    for key, (rows, values) in change.items():
        tables[key][torch.from_numpy(rows.astype(np.int64))] = torch.from_numpy(values)
    assert all(torch.equal(tables[key], table) for key, table in twin.state().items())
    model.apply_change(change)
    assert digest(model) == digest(twin)


@every_model
def test_reset_forgets_events_and_keeps_weights(name: str) -> None:
    model, weights = taught(name), taught(name).weights()
    model.reset()
    replay(model, EVENTS)
    assert all(torch.equal(tensor, weights[key]) for key, tensor in model.weights().items())
    assert digest(model) == digest(taught(name))


@every_model
def test_unknown_users_and_items_are_accepted(name: str) -> None:
    model = taught(name)
    stranger = Queries.now(np.array([10_000]), 1e9)
    before = model.score(stranger, np.array([0, 5_000], dtype=np.int32))[0]
    assert torch.isfinite(before[0])
    assert before[1] == -torch.inf  # nothing is known of it: below everything
    if "new_items" in model.represents:
        model.observe(Events.of([10_000, 3], [5_000, 5_000], [1e9, 1e9 + 1]))
        assert torch.isfinite(model.score(stranger, np.array([5_000], dtype=np.int32))).all()


@every_model
def test_an_empty_model_answers(name: str) -> None:
    model = build(name)
    assert model.score(Queries.now(np.array([0]), 0.0), np.zeros(0, dtype=np.int32)).shape == (1, 0)
    model.observe(EVENTS[:1])
    assert model.score(queries(EVENTS[1:3]), EVENTS.items[:1]).shape == (2, 1)


@every_model
def test_times_before_1970_are_times_like_any_other(name: str) -> None:
    """Only differences of times count, so a log of long ago gives the same scores."""
    earlier = Events(EVENTS.users, EVENTS.items, EVENTS.times - 60 * 40_000_000)
    assert earlier.times[-1] < 0
    scores = [taught(name, log, epochs=0).score(queries(log[-50:]), CANDIDATES) for log in (EVENTS, earlier)]
    assert torch.allclose(scores[0], scores[1], atol=1e-4)


@every_model
def test_no_event_leaks_into_a_score_computed_for_it_or_before_it(name: str) -> None:
    """Changing any event at or after e changes no score that was computed for e."""
    start, block = 600, 64
    model = taught(name, EVENTS[:start])  # untrained, the networks of some say nothing
    for e in (0, 5, 40, block - 1):
        scores = []
        for change in (False, True):
            users, items = EVENTS.users.copy(), EVENTS.items.copy()
            if change:
                items[start + e :] = (items[start + e :] + 7) % 30
                users[start + e + 1 :] = (users[start + e + 1 :] + 11) % 40
            events = Events(users, items, EVENTS.times)
            asked = queries(events[start : start + block])
            scores.append(model.score(asked, CANDIDATES)[: e + 1])
        assert torch.equal(scores[0], scores[1])


@every_model
def test_evaluation_is_free_of_leaks_across_blocks(name: str) -> None:
    """The ranks of early events are the same whatever happens later."""
    later = EVENTS.items.copy()
    later[700:] = (later[700:] + 3) % 30
    ranks = []
    for items in (EVENTS.items, later):
        events = Events(EVENTS.users, items, EVENTS.times)
        model = taught(name, EVENTS[:400])
        ranks.append(walk(model, events, 400, 900).metrics["rank"][:300])
    assert (ranks[0] == ranks[1]).all()


def planted_log(events: int) -> Events:
    """Half the events are of ten regulars and their ten items, half of passers-by among fifty other items."""
    generator = np.random.default_rng(0)
    regular = generator.random(events) < 0.5
    users = np.where(regular, generator.integers(0, 10, events), generator.integers(10, events // 4, events))
    items = np.where(regular, generator.integers(0, 10, events), generator.integers(10, 60, events))
    return Events.of(users, items, np.arange(events))


@every_model
def test_it_learns_a_planted_log(name: str) -> None:
    """Random is 0.5, knowing who is a regular 0.25, popularity alone a third."""
    events = planted_log(3_000)
    model = taught(name, events[:2_500], epochs=3)
    rank = walk(model, events, 2_500, 3_000).metrics["rank"].mean()
    assert rank < (0.3 if isinstance(model, Trainable) else 0.38)


@every_model
def test_partitions_are_named_as_in_reports(name: str) -> None:
    assert build(name).represents <= set(PARTITIONS)
