"""Vectors made of counts, and the users near to an item or a user."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

from felrec.data.events import Events, Rows
from felrec.evaluation.protocols import replay
from felrec.model.counted_vectors import CONSIDERED, CountedVectors
from felrec.model.felrec_s import FELRecS, FELRecSWithVectors, felrec_s
from felrec.model.felrec_s_settings import FELRecSSettings

COOKS, SMITHS = range(30), range(30, 60)  # users
DISHES, TOOLS = range(12), range(12, 24)  # items


def two_camps() -> list[tuple[int, int]]:
    """Who takes what: cooks take dishes and smiths take tools, in random order."""
    chosen = random.Random(0)
    camps = ((COOKS, DISHES), (SMITHS, TOOLS))
    return [(user, chosen.choice(items)) for _ in range(10) for users, items in camps for user in users]


def taught(events: list[tuple[int, int]], model: FELRecS | None = None) -> FELRecSWithVectors:
    made = model or felrec_s(FELRecSSettings())
    assert isinstance(made, FELRecSWithVectors)
    users, items = zip(*events, strict=True)
    replay(made, Events.of(users, items, range(len(events))))
    return made


def rows(numbers: range | list[int]) -> Rows:
    return np.array(numbers, dtype=np.int32)


def mean_cosine(one: torch.Tensor, other: torch.Tensor) -> float:
    return float((one @ other.T).mean())


def test_items_and_users_of_one_camp_are_alike() -> None:
    made = taught(two_camps())
    dishes, tools = made.item_vectors(rows(DISHES)), made.item_vectors(rows(TOOLS))
    assert mean_cosine(dishes, dishes) > mean_cosine(dishes, tools) + 0.5
    cooks, smiths = made.user_vectors(rows(COOKS)), made.user_vectors(rows(SMITHS))
    assert mean_cosine(cooks, cooks) > mean_cosine(cooks, smiths) + 0.5
    for vectors in (dishes, cooks):
        assert vectors.norm(dim=1).tolist() == pytest.approx([1.0] * len(vectors), abs=1e-5)


def test_items_that_no_user_had_both_are_alike_if_the_same_items_are_taken_with_them() -> None:
    old, new, common, other = 0, 1, range(2, 6), 6
    events = [(user, item) for user in range(20) for item in (*common, old if user % 2 else new)]
    made = taught([*events, *((user, item) for user in range(20, 40) for item in (other, 7))])
    linked = made.linked_items(old)
    assert linked is not None
    assert new not in linked.rows
    vectors = made.item_vectors(rows([old, new, other]))
    assert float(vectors[0] @ vectors[1]) > float(vectors[0] @ vectors[2]) + 0.5


def test_without_links_an_item_is_like_no_other_and_a_user_without_a_history_is_zero() -> None:
    made = taught([(0, 5)])
    vectors = made.item_vectors(rows([5, 9]))
    assert vectors.norm(dim=1).tolist() == pytest.approx([1, 1], abs=1e-5)
    assert abs(float(vectors[0] @ vectors[1])) < 0.3
    assert not made.user_vectors(rows([7])).any()


def test_vectors_do_not_depend_on_what_else_is_asked_for() -> None:
    made = taught(two_camps())
    together = made.item_vectors(rows(range(24)))
    assert torch.allclose(together[5], made.item_vectors(rows([5]))[0], atol=1e-6)
    users = made.user_vectors(rows(range(60)))
    assert torch.allclose(users[40], made.user_vectors(rows([40]))[0], atol=1e-6)


def test_users_near_an_item_are_those_of_its_camp() -> None:
    new_dish = 24
    made = taught([*two_camps(), (0, new_dish)])
    near = made.users_near_item(new_dish)
    assert near is not None
    assert set(near.tolist()) == set(COOKS)
    near = made.users_near_user(SMITHS[0])
    assert near is not None
    assert set(near.tolist()) == set(SMITHS) - {SMITHS[0]}


def test_those_with_most_in_common_are_considered() -> None:
    crowd = CONSIDERED + 100
    everyone = [(user, 0) for user in range(crowd)]  # item 0 says little
    made = taught([*everyone, (3, 1), (4, 1), (3, 2), (4, 2)])
    near = made.users_near_user(3)
    assert near is not None
    assert 4 in near[:1]
    assert len(near) <= CONSIDERED


def test_without_the_signal_together_the_cached_vectors_are_compared() -> None:
    settings = FELRecSSettings(signals=["trend", "vectors"], width=16, heads=2)
    made = taught(two_camps(), felrec_s(settings))
    assert made.item_vectors(rows([1])).shape == (1, 16)
    assert made.users_near_item(1) is None
    assert made.users_near_user(1) is None
    assert not isinstance(felrec_s(FELRecSSettings(signals=["trend"])), FELRecSWithVectors)


def test_they_are_computed_from_the_state_as_it_is() -> None:
    made = taught(two_camps())
    assert made.signals.together is not None
    counted = CountedVectors(made.signals.together, made.signals.recent)
    before = counted.of_items(rows([0]))
    made.observe(Events.of([0, 0, 0], [12, 13, 0], [1e6] * 3))
    assert not torch.allclose(before, counted.of_items(rows([0])), atol=1e-3)
