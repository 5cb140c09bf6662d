"""The compiled kernels rank targets as the scores of all items do."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import needs
from felrec.abilities import Comparison
from felrec.data.events import Events, Rows
from felrec.data.pending import Pending
from felrec.data.synthetic import synthetic_log
from felrec.evaluation.protocols import EventResults, replay, walk
from felrec.model import felrec_s as felrec_s_module
from felrec.model.felrec_s import FELRecS, felrec_s
from felrec.model.felrec_s_settings import FELRecSSettings
from felrec.pretrained import load_pretrained
from felrec.recommender import Queries
from random_models import ITEMS, USERS, logs, models

needs.kernels()

LOG = synthetic_log(6_000, n_users=200, n_items=3_000, seed=5).log.events
NOTHING = np.zeros((1, 0), dtype=np.int32)


def check(found: Comparison, scores: torch.Tensor, targets: Rows, leave_out: Pending, others: Rows) -> None:
    """Against the scores (B, C) of rows 0 to C; near scores may be in another order."""
    for nth, (of_query, target) in enumerate(zip(scores.numpy(), targets, strict=True)):
        near = 1e-5 * (1 + np.abs(of_query[np.isfinite(of_query)]).max())
        np.testing.assert_allclose(found.target[nth], of_query[target], rtol=0, atol=near)
        np.testing.assert_allclose(found.others[nth], of_query[others[nth]], rtol=0, atol=near)
        ranked = of_query.copy()
        ranked[leave_out.values[leave_out.starts[nth] : leave_out.stops[nth]]] = -np.inf
        surely, maybe = (ranked > ranked[target] + near).sum(), (ranked >= ranked[target] - near).sum()
        assert surely <= found.better[nth]
        assert found.better[nth] + found.equal[nth] <= maybe
        assert found.equal[nth] >= 1


@settings(max_examples=150, deadline=None)
@given(models(), logs(), st.data())
def test_they_rank_as_the_scores_of_all_items(made: FELRecS, log: Events, data: st.DataObject) -> None:
    replay(made, log, block=20)
    candidates = np.unique(log.shown().items)
    if not len(candidates):
        return
    count = data.draw(st.integers(1, 40))
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    pending = Pending.of([random.integers(ITEMS + 3, size=random.integers(8)).tolist() for _ in range(count)])
    users = random.integers(USERS + 2, size=count).astype(np.int32)
    asked = Queries(users, np.full(count, 31_000.0), pending, np.full(len(pending.values), 29_000.0))
    targets = random.choice(candidates, count)
    left_out = [np.setdiff1d(random.choice(candidates, 9), target) for target in targets]
    leave_out = Pending.of([rows.tolist() for rows in left_out])
    others = random.choice(candidates, (count, 5))
    found = made.compare(asked, candidates, targets, leave_out, others)
    assert found is not None
    check(found, made.score(asked, np.arange(ITEMS + 4, dtype=np.int32)), targets, leave_out, others)


def walked(made: FELRecS, exclude_seen: bool, since: int = 0) -> EventResults:
    made.reset()
    replay(made, LOG[since:4_000])
    return walk(made, LOG, 4_000, 6_000, since=since, exclude_seen=exclude_seen)


@pytest.mark.parametrize("exclude_seen", [False, True])
@pytest.mark.parametrize("since", [0, 2_000])
@pytest.mark.parametrize("weights", ["bundled", "new"])
def test_an_evaluation_gives_the_same_ranks(
    weights: str, exclude_seen: bool, since: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = load_pretrained().recommender if weights == "bundled" else felrec_s(FELRecSSettings(width=16))
    assert isinstance(made, FELRecS)
    compared = walked(made, exclude_seen, since)
    monkeypatch.setattr(felrec_s_module, "library", lambda: None)
    scored = walked(made, exclude_seen, since)
    np.testing.assert_array_equal(compared.candidates, scored.candidates)
    np.testing.assert_array_equal(compared.first, scored.first)
    np.testing.assert_allclose(compared.rank, scored.rank, rtol=0, atol=1)  # near scores may change places
    assert (compared.rank == scored.rank)[~scored.first].mean() > 0.99
    for name, values in scored.metrics.items():
        assert abs(compared.metrics[name].mean() - values.mean()) < 1e-3


def test_equal_scores_count_as_equal() -> None:
    made = felrec_s(FELRecSSettings(signals=["repetition"]))  # for a user without items, all are equal
    made.observe(Events.of(np.arange(9), np.arange(9), np.zeros(9)))
    asked, target = Queries.now(np.array([50]), 0.0), np.array([4], dtype=np.int32)
    found = made.compare(asked, np.arange(9, dtype=np.int32), target, Pending.of([[2, 3]]), NOTHING)
    assert found is not None
    assert (found.better.tolist(), found.equal.tolist()) == ([0], [7])


def test_they_do_not_compare_some_items_only() -> None:
    made = felrec_s(FELRecSSettings(width=16))
    replay(made, LOG[:500])
    asked, target = Queries.now(np.array([0]), 0.0), np.array([1], dtype=np.int32)
    assert made.compare(asked, np.arange(5, dtype=np.int32), target, Pending.none(1), NOTHING) is None


def test_threads_and_batches_give_the_same_ranks() -> None:
    made = load_pretrained().recommender
    assert isinstance(made, FELRecS)
    replay(made, LOG)
    candidates, asked = np.unique(LOG.items), Queries.now(np.arange(200), 2e9)
    targets, others = LOG.items[:200], LOG.items[:2_000].reshape(200, 10)
    threads = torch.get_num_threads()
    found = list[Comparison]()
    try:
        for count in (1, 3):
            torch.set_num_threads(count)
            of_all = made.compare(asked, candidates, targets, Pending.none(200), others)
            assert of_all is not None
            found.append(of_all)
    finally:
        torch.set_num_threads(threads)
    one_by_one = [
        made.compare(asked[row : row + 1], candidates, targets[row : row + 1], Pending.none(1), others[row : row + 1])
        for row in range(200)
    ]
    for alone, together, threaded in zip(zip(*filter(None, one_by_one), strict=True), *found, strict=True):
        np.testing.assert_array_equal(together, threaded)
        np.testing.assert_array_equal(together, np.concatenate(alone))
