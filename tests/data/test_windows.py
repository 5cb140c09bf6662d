"""Windows: every event is a target once an epoch, after the events of its user that came before it."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from felrec.data.batches import Batch, Batches
from felrec.data.events import Events
from felrec.data.sessions import Sessions
from felrec.data.shuffled import Shuffled
from felrec.data.windows import WindowBatch, Windows, by_length

logs = st.lists(st.integers(0, 5), min_size=1, max_size=60).map(
    lambda users: Events.of(users, np.arange(len(users)), np.arange(len(users)))  # an item is the event's number
)


B = TypeVar("B", bound=Batch)


def steps_of(batches: Batches[B]) -> list[B]:
    return [batches[step] for step in range(len(batches))]


def predecessor(events: Events) -> dict[int, int]:
    """The item before each item, of the same user; -1 before the first."""
    last: dict[int, int] = {}
    before = {}
    for user, item in zip(events.users.tolist(), events.items.tolist(), strict=True):
        before[item] = last.get(user, -1)
        last[user] = item
    return before


def pairs(batch: WindowBatch) -> list[tuple[int, int]]:
    """(input, target) of all positions that count."""
    return [
        (int(batch.inputs[row, at]), int(batch.targets[row, at]))
        for row, length in enumerate(batch.lengths)
        for at in range(length)
    ]


@given(logs, st.integers(1, 9), st.integers(2, 20), st.integers(0, 3))
def test_every_event_is_a_target_once_after_its_predecessor(
    events: Events, length: int, batch_size: int, epoch: int
) -> None:
    windows = Windows(events, length, batch_size, seed=(0, epoch))
    before, found = predecessor(events), []
    for batch in steps_of(windows):
        assert len(batch) == sum(batch.lengths)
        assert (batch.lengths >= 1).all()
        assert batch.targets.shape == batch.inputs.shape == (len(batch.lengths), batch.lengths.max())
        assert batch.lengths.max() <= length
        assert (batch.inputs[:, 1:] == batch.targets[:, :-1])[batch.targets[:, 1:] >= 0].all()  # one user, no gap
        found += pairs(batch)
    assert sorted(target for _, target in found) == list(range(len(events)))
    assert all(before[target] == given for given, target in found)


def test_a_history_that_fits_is_never_cut_and_a_longer_one_at_changing_places() -> None:
    events = Events.of([0] * 5 + [1] * 20, range(25), range(25))
    starts = set()
    for epoch in range(20):
        (batch,) = steps_of(Windows(events, 8, 100, seed=(0, epoch)))
        firsts = batch.targets[:, 0].tolist()
        assert 0 in firsts
        assert not {1, 2, 3, 4} & set(firsts)
        starts |= set(firsts)
    assert len(starts) > 8


def test_batches_hold_about_as_many_events_as_asked_for() -> None:
    users = np.random.default_rng(0).integers(0, 300, 20_000)
    sizes = [len(batch) for batch in steps_of(Windows(Events.of(users, users, users), 64, 1000))]
    assert len(sizes) == 20
    assert max(abs(size - 1000) for size in sizes) <= 64


def test_the_same_seed_gives_the_same_batches_and_another_epoch_others() -> None:
    generator = np.random.default_rng(0)
    events = Events.of(generator.integers(0, 20, 500), generator.integers(0, 9, 500), range(500))
    for cut in (lambda seed: Windows(events, 8, 50, 0.5, seed), lambda seed: Shuffled(events, 50, 0.5, seed)):
        one, same, other = cut((1, 2)), cut((1, 2)), cut((1, 3))
        assert len(one) == len(same)
        assert all(_bytes(one[step]) == _bytes(same[step]) for step in range(len(one)))
        assert any(_bytes(one[step]) != _bytes(other[step]) for step in range(min(len(one), len(other))))


def _bytes(batch: WindowBatch | Events) -> bytes:
    return batch.targets.tobytes() if isinstance(batch, WindowBatch) else batch.users.tobytes() + batch.items.tobytes()


def test_a_share_is_learned_from() -> None:
    events = Events.of(np.repeat(np.arange(100), 10), np.zeros(1000), range(1000))
    assert sum(len(batch) for batch in steps_of(Windows(events, 64, 100, 0.3))) == 300
    assert sum(len(batch) for batch in steps_of(Shuffled(events, 100, 0.3))) == 300


@given(st.lists(st.integers(1, 30), max_size=40), st.integers(1, 100))
def test_groups_by_length_hold_each_sequence_once_within_the_limit(lengths: list[int], positions: int) -> None:
    array = np.array(lengths, dtype=np.int64)
    groups = list(by_length(array, positions))
    assert sorted(index for group in groups for index in group) == list(range(len(array)))
    for group in groups:
        assert len(group) == 1 or len(group) * array[group].max() <= positions


@given(logs, st.integers(1, 8), st.integers(0, 3))
def test_sessions_advance_one_event_at_a_time_in_order(events: Events, batch_size: int, epoch: int) -> None:
    taken: dict[int, list[int]] = {}
    steps = steps_of(Sessions(events, batch_size, seed=(0, epoch)))
    for step in steps:
        users = step.events.users.tolist()
        assert len(set(users)) == len(users) <= batch_size
        assert step.trained is None
        for user, item in zip(users, step.events.items.tolist(), strict=True):
            taken.setdefault(user, []).append(item)
    assert all(items == events.items[events.users == user].tolist() for user, items in taken.items())
    assert sum(map(len, taken.values())) == len(events)
    full = [len(step) for step in steps]
    assert full == sorted(full, reverse=True)  # never fewer sessions than are unfinished


def test_a_share_of_each_set_of_sessions_is_learned_from_and_all_advance() -> None:
    events = Events.of(np.arange(1000) % 50, np.zeros(1000), range(1000))
    steps = steps_of(Sessions(events, 20, 0.25))
    assert sum(len(step) for step in steps) == 1000
    full = [step for step in steps if len(step) == 20]
    assert len(full) >= 40  # two sets of sessions of 20 events each, before the last set of ten
    assert all(step.trained is not None and step.trained.sum() == 5 for step in full)
