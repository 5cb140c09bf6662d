"""TopKCounts against dictionaries of counts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from felrec.data.tables.top_k_counts import TopKCounts

meetings = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), min_size=1, max_size=12)


def add(counted: TopKCounts, block: list[tuple[int, int]], first: int = 0) -> None:
    owners, others = np.array(block).T
    counted.add(owners, others, nth=np.arange(first, first + len(block)))


@given(blocks=st.lists(meetings, max_size=6))
def test_with_room_for_all_they_are_exact_counts(blocks: list[list[tuple[int, int]]]) -> None:
    counted, counts, latest = TopKCounts(6, marks=("nth",)), dict[tuple[int, int], int](), dict[tuple[int, int], int]()
    events = 0
    for block in blocks:
        add(counted, block, events)
        for pair in block:
            counts[pair] = counts.get(pair, 0) + 1
            latest[pair] = events
            events += 1
    rows = counted.of(np.arange(4))
    owner, slot = np.nonzero(rows["other"] >= 0)
    pairs = [(int(o), int(x)) for o, x in zip(owner, rows["other"][owner, slot], strict=True)]
    assert dict(zip(pairs, rows["count"][owner, slot].tolist(), strict=True)) == counts
    assert dict(zip(pairs, rows["nth"][owner, slot].tolist(), strict=True)) == latest


@given(blocks=st.lists(meetings, max_size=6))
def test_a_change_reads_only_and_state_is_all_there_is(blocks: list[list[tuple[int, int]]]) -> None:
    counted = TopKCounts(2, fade=0.9)
    for block in blocks:
        owners, others = np.array(block).T
        before = {name: column.tobytes() for name, column in counted.state().items()}
        change = counted.change(owners, others)
        assert before == {name: column.tobytes() for name, column in counted.state().items()}
        counted.apply_change(change)
    again = TopKCounts(2, fade=0.9)
    again.load_state(counted.state())
    for name, column in again.of(np.arange(9)).items():
        assert (column == counted.of(np.arange(9))[name]).all()


def test_the_weakest_makes_room_and_what_fades_becomes_weak() -> None:
    counted = TopKCounts(2, fade=0.5)
    counted.add(np.array([0, 0, 0, 0]), np.array([1, 1, 1, 2]))
    counted.add(np.array([0]), np.array([3]))
    assert sorted(counted.of(np.array([0]))["other"][0].tolist()) == [1, 3]  # 2 was there once and has faded
    for _ in range(4):
        counted.add(np.array([0]), np.array([4]))
        counted.add(np.array([0]), np.array([5]))
    assert sorted(counted.of(np.array([0]))["other"][0].tolist()) == [4, 5]


def test_more_newcomers_than_slots_keep_the_most_frequent() -> None:
    counted = TopKCounts(2)
    counted.add(np.zeros(7, dtype=np.int64), np.array([1, 2, 2, 3, 4, 4, 4]))
    row = counted.of(np.array([0]))
    assert dict(zip(row["other"][0].tolist(), row["count"][0].tolist(), strict=True)) == {4: 3.0, 2: 2.0}


@pytest.mark.parametrize("owner", [5, 1_000_000])
def test_an_unknown_owner_has_nothing(owner: int) -> None:
    counted = TopKCounts(3)
    counted.add(np.array([4]), np.array([1]))
    assert counted.of(np.array([owner]))["other"].tolist() == [[-1, -1, -1]]


def test_marks_stay_with_their_counterpart_when_a_newcomer_takes_a_slot() -> None:
    counted = TopKCounts(2, marks=("nth",))
    counted.add(np.array([0, 0]), np.array([9, 8]), nth=np.array([100, 101]))
    counted.add(np.array([0, 0, 0]), np.array([9, 5, 6]), nth=np.array([202, 200, 201]))
    row = counted.of(np.array([0]))
    assert dict(zip(row["other"][0].tolist(), row["nth"][0].tolist(), strict=True)) == {5: 200, 6: 201}


def test_an_owner_without_meetings_has_a_row_of_its_own() -> None:
    counted = TopKCounts(2)
    change = counted.change(np.array([3]), np.array([1]), np.array([0, 3, 4], dtype=np.int32))
    assert change["other"][0].tolist() == [0, 3, 4]
    assert change["other"][1].tolist() == [[-1, -1], [1, -1], [-1, -1]]
