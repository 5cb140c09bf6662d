"""Item-kNN: counts and scores against naive loops, and what decides where there is no evidence."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch

from felrec.baselines import item_knn as module
from felrec.baselines.item_knn import ItemKNN, ItemKNNSettings
from felrec.data.events import Events
from felrec.data.pending import Pending
from felrec.recommender import Queries

GENERATOR = np.random.default_rng(0)
EVENTS = Events.of(GENERATOR.integers(0, 8, 300), GENERATOR.integers(0, 20, 300), np.arange(300))
ITEMS = np.arange(20, dtype=np.int32)


def taught(block: int = 37, **settings: Any) -> ItemKNN:
    model = ItemKNN(ItemKNNSettings(**{"history_length": 4, **settings}))
    for some in EVENTS.blocks(block):
        model.observe(some)
    return model


def naive_counts(length: int) -> Counter[tuple[int, int]]:
    """How often two items were taken within `length` events of one user, by both orders."""
    counts, histories = Counter[tuple[int, int]](), dict[int, list[int]]()
    for user, item in zip(EVENTS.users.tolist(), EVENTS.items.tolist(), strict=True):
        history = histories.setdefault(user, [])
        for earlier in history[-length:]:
            counts[earlier, item] += 1
            if earlier != item:
                counts[item, earlier] += 1
        history.append(item)
    return counts


def naive_scores(history: list[int], settings: ItemKNNSettings) -> list[float]:
    counts, events = naive_counts(settings.history_length), Counter(EVENTS.items.tolist())
    assert settings.half_life
    assert settings.popular_share
    scores = []
    for candidate in range(20):
        popular = sum(0.5 ** ((299 - i) / settings.half_life) for i in np.flatnonzero(EVENTS.items == candidate))
        score = settings.popular_share * (1 - 1 / (1 + popular))
        for age, item in enumerate(reversed(history[-settings.history_length :])):
            root = (events[item] * events[candidate]) ** 0.5
            score += counts[item, candidate] / (root + settings.shrinkage) / (1 + age)
        scores.append(score)
    return scores


@pytest.mark.parametrize("block", [1, 37, 300])
def test_counts_equal_those_of_a_naive_loop(block: int) -> None:
    model, naive = taught(block), naive_counts(4)
    found = model.together.of(np.arange(20))
    counts = model.together["count"][found.rows]
    assert naive == dict(zip(zip(found.asked.tolist(), found.others.tolist(), strict=True), counts, strict=True))


@pytest.mark.parametrize("at_once", [7, 500_000])
def test_scores_equal_those_of_a_naive_loop(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_AT_ONCE", at_once)
    model = taught(shrinkage=2.0, popular_share=0.2, half_life=50)
    lists = [GENERATOR.integers(0, 20, length).tolist() for length in (0, 1, 3, 6, 0, 2)]
    users = np.arange(6, dtype=np.int32)
    scores = model.score(Queries(users, np.full(6, 300.0), Pending.of(lists)), ITEMS)
    for user, pending in enumerate(lists):
        expected = naive_scores(EVENTS.items[EVENTS.users == user].tolist() + pending, model.settings)
        assert torch.allclose(scores[user], torch.tensor(expected, dtype=torch.float64))


def test_a_stranger_gets_what_is_popular() -> None:
    model = taught()
    ranked = model.score(Queries.now(np.array([99]), 0.0), ITEMS)[0].argsort(descending=True).tolist()
    assert ranked == np.argsort(-model.popular.of(ITEMS)).tolist()


def test_a_new_item_is_recommended_after_one_event_together() -> None:
    model = taught(popular_share=1e-9)
    model.observe(Events.of([50, 50, 52], [3, 777, 888], [300, 301, 302]))
    model.observe(Events.of([51], [3], [303]))
    together, alone = model.score(Queries.now(np.array([51]), 304.0), np.array([777, 888], dtype=np.int32))[0]
    assert together > 0.01 > alone


def test_repeats_are_learned_where_there_are_any() -> None:
    often, never = ItemKNN(), ItemKNN()
    users, nine = np.repeat(np.arange(9), 3), np.arange(9, dtype=np.int32)
    often.observe(Events.of(users, users, np.arange(27)))
    never.observe(Events.of(users, (users + np.tile([0, 1, 2], 9)) % 9, np.arange(27)))
    for model, repeats in ((often, True), (never, False)):
        model.observe(Events.of([50], [4], [30]))
        assert (int(model.score(Queries.now(np.array([50]), 99.0), nine).argmax()) == 4) is repeats


def test_choices_leave_what_was_given() -> None:
    assert len(list(ItemKNN().choices())) == 4
    given = [chosen for chosen, _ in ItemKNN(ItemKNNSettings(half_life=7, shrinkage=3)).choices()]
    assert {(chosen["half_life"], chosen["shrinkage"]) for chosen in given} == {(7, 3)}
    assert len(given) == 2
