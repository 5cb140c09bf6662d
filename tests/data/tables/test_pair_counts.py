"""The table of pairs, against a dictionary."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from felrec.data.tables import pair_counts as module
from felrec.data.tables.pair_counts import PairCounts


@pytest.fixture
def often_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Indexes are merged every few pairs, so that a short test meets both."""
    monkeypatch.setattr(module, "_MERGE_LEAST", 20)


def found(pairs: PairCounts, owner: int) -> dict[int, int]:
    own = pairs.of(np.array([owner]))
    return dict(zip(own.others.tolist(), pairs["count"][own.rows].tolist(), strict=True))


@pytest.mark.usefixtures("often_merged")
def test_counts_equal_those_of_a_dictionary() -> None:
    generator, pairs, naive = np.random.default_rng(0), PairCounts(), Counter[tuple[int, int]]()
    for _ in range(60):
        owners, others = generator.integers(0, 12, 9), generator.integers(0, 2**31 - 1, 4)[generator.integers(0, 4, 9)]
        pairs.add(owners, others)
        naive.update(zip(owners.tolist(), others.tolist(), strict=True))
    assert len(pairs) == len(naive)
    for owner in range(13):
        assert found(pairs, owner) == {other: n for (mine, other), n in naive.items() if mine == owner}


@pytest.mark.usefixtures("often_merged")
def test_equal_contents_have_equal_states_however_they_came() -> None:
    generator = np.random.default_rng(0)
    owners, others = generator.integers(0, 50, 500), generator.integers(0, 50, 500)
    states = []
    for size in (7, 500):
        pairs = PairCounts(last=np.int64)
        for start in range(0, 500, size):
            some = slice(start, start + size)
            pairs.add(owners[some], others[some], last=np.arange(500)[some])
        states.append(pairs.state())
    assert all((states[0][name] == states[1][name]).all() for name in ("key", "count", "last"))


def test_state_is_a_copy_and_comes_back() -> None:
    pairs, again = PairCounts(), PairCounts()
    pairs.add(np.array([5, 1, 5, 5]), np.array([2, 9, 1, 2]))
    state = pairs.state()
    again.load_state(state)
    assert found(again, 5) == found(pairs, 5) == {1: 1, 2: 2}
    pairs.add(np.array([5, 5]), np.array([2, 7]))
    assert found(again, 5) == {1: 1, 2: 2}
    assert state["count"].sum() == 4


def test_a_change_reads_only() -> None:
    pairs = PairCounts()
    pairs.add(np.array([5]), np.array([2]))
    change = pairs.change(np.array([5, 5]), np.array([2, 3]))
    assert found(pairs, 5) == {2: 1}
    pairs.apply_change(change)
    assert found(pairs, 5) == {2: 2, 3: 1}


def test_an_empty_table_answers() -> None:
    assert len(PairCounts().of(np.array([0, 3])).rows) == 0
