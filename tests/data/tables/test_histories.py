"""Histories against a dictionary of lists."""

from __future__ import annotations

from unittest import mock

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from felrec.data.pending import Pending
from felrec.data.tables import histories as histories_module
from felrec.data.tables.histories import Histories

blocks = st.lists(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 50)), max_size=12),
    max_size=6,
)


def columns(block: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    pairs = np.array(block, dtype=np.int32).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


@given(blocks=blocks, length=st.integers(1, 5))
def test_histories_match_a_dictionary_of_lists(blocks: list[list[tuple[int, int]]], length: int) -> None:
    histories, model = Histories(length), dict[int, list[int]]()
    for block in blocks:
        owners, others = columns(block)
        rows, mask = histories.recent(owners, Pending.within_block(owners, others))
        for i, (owner, other) in enumerate(block):
            expected = model.get(owner, [])[-length:]
            assert rows[i][mask[i]].tolist() == expected
            assert (rows[i][~mask[i]] == -1).all()
            assert mask[i].tolist() == sorted(mask[i].tolist())  # padded on the left only
            model.setdefault(owner, []).append(other)
        histories.append(owners, others)
        for owner, others_of in model.items():
            assert histories.counts(np.array([owner])).tolist() == [len(others_of)]


@given(events=st.lists(st.tuples(st.integers(0, 6), st.integers(0, 50)), max_size=60), length=st.integers(1, 5))
def test_a_large_append_ends_where_small_ones_do(events: list[tuple[int, int]], length: int) -> None:
    owners, others = columns(events)
    one_by_one, at_once = Histories(length), Histories(length)
    for begin in range(len(events)):
        one_by_one.append(owners[begin : begin + 1], others[begin : begin + 1])
    with mock.patch.object(histories_module, "_BLOCK", 4):
        at_once.append(owners[:9], others[:9])  # so that the next call starts from rings in use
        at_once.append(owners[9:], others[9:])
    for name, expected in one_by_one.state().items():
        np.testing.assert_array_equal(at_once.state()[name], expected)


def test_reading_changes_nothing_and_unknown_owners_are_empty() -> None:
    histories = Histories(3)
    histories.append(np.array([1, 1]), np.array([4, 5]))
    before = histories.state()
    rows, mask = histories.recent(np.array([99]), Pending.of([[7, 8, 9, 10]]))
    assert rows.tolist() == [[8, 9, 10]]
    assert mask.all()
    after = histories.state()
    assert all((before[name] == after[name]).all() for name in before)


def test_state_round_trip_and_clear() -> None:
    histories = Histories(2)
    histories.append(np.array([0, 3, 3, 3]), np.array([1, 2, 3, 4]))
    other = Histories(2)
    other.load_state(histories.state())
    assert other.recent(np.array([3, 0]))[0].tolist() == [[3, 4], [-1, 1]]
    other.append(np.array([3]), np.array([9]))
    assert histories.recent(np.array([3]))[0].tolist() == [[3, 4]]  # a copy, not a view
    other.clear()
    assert other.owners == 0
    assert other.recent(np.array([3]))[0].tolist() == [[-1, -1]]


def test_pending_slices_select_lists() -> None:
    pending = Pending.of([[1], [], [2, 3]])
    part = pending[np.array([2, 0])]
    assert [part.values[a:b].tolist() for a, b in zip(part.starts, part.stops, strict=True)] == [[2, 3], [1]]
    assert len(Pending.none(4)) == 4


def test_rewritten_histories_go_on_as_if_the_events_had_never_been_others() -> None:
    """Where all events are known it is as if they had been appended; where some are not, they are padding."""
    histories, twin = Histories(3), Histories(3)
    histories.append(np.array([0, 0, 0, 0, 1]), np.array([5, 6, 7, 8, 9]))
    twin.append(np.array([0, 0, 1]), np.array([5, 8, 9]))
    owners = np.array([0], dtype=np.int32)
    histories.apply_change(histories.rewrite(owners, Pending.of([[5, 8]]), np.array([2])))
    assert all((histories.state()[name] == twin.state()[name]).all() for name in twin.state())
    histories.apply_change(histories.rewrite(owners, Pending.of([[8]]), np.array([4])))
    rows, mask = histories.recent(owners)
    assert (rows.tolist(), mask.tolist()) == ([[-1, -1, 8]], [[False, False, True]])
    histories.append(np.array([0]), np.array([4]))
    assert histories.recent(owners)[0].tolist() == [[-1, 8, 4]]
    assert histories.counts(owners).tolist() == [5]
