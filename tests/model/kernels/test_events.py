"""The compiled kernels change the state as the signals do in numpy and torch."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import needs
from felrec.abilities import ErasureContext
from felrec.data.batches import TimeBatch
from felrec.data.events import Events, RowChange
from felrec.data.pending import Pending
from felrec.data.synthetic import synthetic_log
from felrec.data.tables.packed_rows import room_of
from felrec.model import felrec_s as felrec_s_module
from felrec.model.compiled_events import CompiledChange
from felrec.model.felrec_s import FELRecS, felrec_s
from felrec.model.felrec_s_settings import FELRecSSettings
from felrec.model.kernels.native.library import state_kernels
from felrec.pretrained import load_pretrained
from random_models import logs, models

needs.kernels()

LOG = synthetic_log(3_000, n_users=100, n_items=400, basket=3.0, seed=5).log.events


def check(found: RowChange, expected: RowChange) -> None:
    assert list(found) == list(expected)
    for name, (rows, values) in expected.items():
        np.testing.assert_array_equal(found[name][0], rows, err_msg=name)
        assert (found[name][0].dtype, found[name][1].dtype) == (rows.dtype, values.dtype), name
        if values.dtype.kind == "f":
            np.testing.assert_allclose(found[name][1], values, rtol=1e-5, atol=1e-5, err_msg=name)
        else:
            np.testing.assert_array_equal(found[name][1], values, err_msg=name)


def check_states(found: FELRecS, expected: FELRecS) -> None:
    state = found.state()
    for name, values in expected.state().items():
        torch.testing.assert_close(state[name], values, rtol=1e-5, atol=1e-5, msg=name)


def in_numpy(made: FELRecS) -> FELRecS:
    """A model with the same weights and state, to be changed by its signals."""
    reference = made.twin()
    reference.load_state(made.state())
    return reference


def bundled(events: int) -> FELRecS:
    made = load_pretrained().recommender
    assert isinstance(made, FELRecS)
    for block in LOG[:events].blocks(256):
        made.observe(block)
    return made


@settings(max_examples=100, deadline=None)
@given(models(), logs(), st.lists(st.sampled_from([1, 2, 7, 30, 80]), min_size=1, max_size=8))
def test_a_change_is_the_same_for_any_signals_and_blocks(made: FELRecS, log: Events, sizes: list[int]) -> None:
    start = 0
    while start < len(log):
        block = log[start : start + sizes[start % len(sizes)]]
        change, expected = made.change(block), made.signals.change(block)
        assert isinstance(change, CompiledChange)
        check(change, expected)
        reference = in_numpy(made)
        reference.signals.apply_change(expected)
        made.apply_change(change)
        check_states(made, reference)
        start += len(block)


def test_bundled_weights_and_full_tables() -> None:
    made = bundled(2_000)
    for start, stop in ((2_000, 2_001), (2_001, 2_009), (2_009, 2_109), (2_109, 3_000)):
        check(made.change(LOG[start:stop]), made.signals.change(LOG[start:stop]))
        made.observe(LOG[start:stop])


def test_rows_that_the_kernels_moved_have_the_room_that_packed_rows_give_them() -> None:
    made = felrec_s(FELRecSSettings(width=16, own_items=20, near_items=37))  # the last room is no power of two
    for block in LOG[:1_000].blocks(8):
        made.observe(block)
    for signal in (made.signals.repetition, made.signals.together, made.signals.follows, made.signals.ahead):
        assert signal is not None
        rows = signal.counts.rows
        used, place = rows.used.values, rows.place.values
        order = np.argsort(place[used > 0])
        begin = place[used > 0][order]
        end = begin + np.array([room_of(int(slots), rows.size) for slots in used[used > 0][order]])
        assert (end[:-1] <= begin[1:]).all()
        assert end[-1] <= rows.end[0] <= len(rows.columns["other"].room)


def test_after_an_erasure() -> None:
    made, past = bundled(2_000), LOG[:2_000]
    user, counts = int(past.users[-1]), np.bincount(past.items)
    mine, others = past[past.users == user], past[past.users != user]
    items, taken = np.unique(mine.items, return_counts=True)

    def newest(length: int) -> Pending:
        return Pending.of([others.users[others.items == item][-length:].tolist() for item in items])

    made.apply_change(made.forget(user, ErasureContext(items, taken, counts[items] - taken, mine.items, newest)))
    again = Events.of(np.repeat([user, 3], len(items)), np.tile(items, 2), np.full(2 * len(items), LOG.times[-1]))
    for block in (again, LOG[2_000:2_300]):
        check(made.change(block), made.signals.change(block))
        made.observe(block)


def test_threads_give_the_same_bits() -> None:
    made, threads = bundled(2_000), torch.get_num_threads()
    try:
        changes = []
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            changes.append(made.change(LOG[2_000:2_400]))
    finally:
        torch.set_num_threads(threads)
    for name, (_, values) in changes[0].items():
        assert all(values.tobytes() == other[name][1].tobytes() for other in changes[1:]), name


def test_weights_may_change_between_two_blocks() -> None:
    made = felrec_s(FELRecSSettings(width=16))
    optimiser = torch.optim.AdamW(made.parameters(), lr=0.05, fused=True)
    for start in range(0, 1_024, 256):
        batch = TimeBatch(LOG[start : start + 256])
        optimiser.zero_grad()
        made.loss(batch).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        check(made.change(LOG[1_024:1_100]), made.signals.change(LOG[1_024:1_100]))


def test_a_copy_of_a_model_has_tables_of_its_own() -> None:
    made = bundled(1_000)
    twin, before = copy.deepcopy(made), made.state()
    twin.observe(LOG[1_000:1_100])
    assert all(torch.equal(values, before[name]) for name, values in made.state().items())
    made.observe(LOG[1_000:1_100])
    assert all(torch.equal(values, twin.state()[name]) for name, values in made.state().items())


def test_without_compiled_kernels_the_signals_do_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert state_kernels() == "c1"
    made = bundled(1_000)
    compiled = made.change(LOG[1_000:1_100])
    monkeypatch.setattr(felrec_s_module, "library", lambda: None)
    change = made.change(LOG[1_000:1_100])
    assert not isinstance(change, CompiledChange)
    check(compiled, change)
    made.apply_change(change)
