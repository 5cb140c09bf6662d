"""The signal `sequence`: vectors that events alone make, and the network that reads them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from felrec.abilities import ErasureContext
from felrec.data.events import Events
from felrec.data.pending import Pending
from felrec.data.synthetic import synthetic_log
from felrec.evaluation.protocols import replay
from felrec.model.felrec_s import FELRecS, felrec_s
from felrec.model.felrec_s_settings import FELRecSSettings
from felrec.model.signals.sequence import Sequence, _whitened
from felrec.model.signals.signal import Floats
from felrec.recommender import Queries

GROUP = 10  # items of a kind
LOG = synthetic_log(3_000, n_users=100, n_items=400, seed=5).log.events


def model(**settings: object) -> FELRecS:
    return felrec_s(FELRecSSettings(signals=["trend", "together", "sequence"], sequence_width=32, **settings))


def signal(made: FELRecS) -> Sequence:
    assert made.signals.sequence is not None
    return made.signals.sequence


def two_kinds(events: int, seed: int = 0) -> Events:
    """Users who go from any of ten items to any of ten others; there are two such kinds, and no item is in both."""
    random = np.random.default_rng(seed)
    users = np.repeat(np.arange(events // 10), 10)
    kind, late = users % 2, np.tile(np.arange(10) >= 5, events // 10)
    items = kind * 2 * GROUP + late * GROUP + random.integers(GROUP, size=len(users))
    return Events.of(users, items, np.arange(len(users)) * 60.0)


def cosines(made: FELRecS, rows: range, others: range) -> float:
    vectors = signal(made).vectors.values
    products = vectors[rows.start : rows.stop] @ vectors[others.start : others.stop].T / 2  # of two unit vectors each
    return float(products[~np.eye(len(rows), len(others), dtype=bool)].mean() if rows == others else products.mean())


def test_items_of_a_kind_become_alike() -> None:
    made = model()
    replay(made, two_kinds(6_000))
    first, second = range(GROUP), range(2 * GROUP, 3 * GROUP)
    assert cosines(made, first, first) > 0.8
    assert cosines(made, first, second) < 0.3


def test_a_new_item_is_placed_by_its_first_events() -> None:
    made = model()
    replay(made, two_kinds(6_000))
    users = np.array([2_000, 2_002, 2_004]).repeat(3)  # of the first kind
    taken = np.array([3, 10, 99, 5, 12, 99, 7, 14, 99])
    replay(made, Events.of(users, taken, 6_001 * 60.0 + np.arange(9)), block=1)
    vectors = signal(made).vectors.values / np.sqrt(2)
    alike = vectors[99] @ vectors[: 4 * GROUP].T
    assert alike[: 2 * GROUP].mean() > alike[2 * GROUP :].mean() + 0.2


def test_vectors_have_unit_length_and_do_not_collapse() -> None:
    made = felrec_s(FELRecSSettings(signals=["trend", "sequence"]))
    popular = synthetic_log(8_000, n_users=300, n_items=200, seed=3).log.events
    replay(made, popular)
    seen = np.unique(popular.items)
    halves = signal(made).vectors.values[seen].reshape(len(seen), 2, -1)
    np.testing.assert_allclose(np.linalg.norm(halves, axis=2), 1, rtol=1e-5)
    for side in range(2):
        products = halves[:, side] @ halves[:, side].T
        assert products[~np.eye(len(seen), dtype=bool)].mean() < 0.5  # 1 if all turned into one direction


def test_newton_steps_follow_the_inverse_root_of_a_changing_spread() -> None:
    random = np.random.default_rng(1)
    root: Floats = np.eye(16, dtype=np.float32)
    spread: Floats = root / np.float32(16)
    direction = random.normal(size=16)
    direction /= np.linalg.norm(direction)
    now = 0.6 * np.outer(direction, direction) + 0.025 * np.eye(16)
    for _ in range(300):
        spread = (spread + 0.01 * (now - spread)).astype(np.float32)
        root = _whitened(spread, root)
    whole = spread * (16 / np.trace(spread)) + 0.02 * np.eye(16)
    np.testing.assert_allclose(root @ whole @ root, np.eye(16), atol=1e-3)


def test_large_blocks_and_small_vectors_stay_finite() -> None:
    made = felrec_s(FELRecSSettings(signals=["trend", "sequence"], sequence_width=2))  # opposite seeds cancel out
    made.observe(two_kinds(20_000))
    made.observe(two_kinds(20_000, seed=1))
    assert all(values.isfinite().all() for values in made.state().values())
    vectors = signal(made).vectors.values
    np.testing.assert_allclose(np.abs(vectors[np.unique(two_kinds(20_000).items)]), 1, atol=1e-3)


def test_before_training_nothing_is_wanted() -> None:
    made = model()
    replay(made, LOG[:500])
    wanted = signal(made).wanted(Queries.now(np.arange(20), 1e9))
    assert torch.equal(wanted, torch.zeros(20, 32))


def test_a_user_without_items_wants_nothing() -> None:
    made = model()
    with torch.no_grad():
        signal(made).network.leave.weight.normal_()
    replay(made, LOG[:500])
    wanted = signal(made).wanted(Queries.now(np.array([LOG.users[0], 9_999]), 1e9))
    assert wanted[0].abs().sum() > 0
    assert torch.equal(wanted[1], torch.zeros(32))


def test_a_restored_state_goes_on_as_before() -> None:
    made, restored = model(), model()
    replay(made, LOG[:1_000])
    restored.load_state(made.state())
    for one in (made, restored):
        replay(one, LOG[1_000:1_300])
    for name, values in made.state().items():
        assert torch.equal(restored.state()[name], values), name


def test_an_item_without_other_users_loses_its_vectors_with_its_user() -> None:
    made = model()
    replay(made, Events.of([0, 0, 1, 1], [1, 2, 2, 3], [0.0, 1, 2, 3]))
    items, order = np.array([1, 2], dtype=np.int32), np.array([1, 2], dtype=np.int32)
    context = ErasureContext(items, np.ones(2, int), np.array([0, 1]), order, lambda length: Pending.of([[], [1]]))
    rows, vectors = signal(made).forget(0, context)["sequence_vectors"]
    assert rows.tolist() == [1]
    assert not vectors.any()


def test_it_needs_the_trend() -> None:
    with pytest.raises(ValidationError, match="sequence needs trend; add trend or remove sequence"):
        FELRecSSettings(signals="together,sequence")
