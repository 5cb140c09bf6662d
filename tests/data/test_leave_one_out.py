"""The leave-one-out split."""

from __future__ import annotations

import numpy as np

from felrec.data.events import Events
from felrec.data.leave_one_out import leave_one_out


def test_the_last_two_events_of_each_user_are_held_out() -> None:
    generator = np.random.default_rng(0)
    events = Events.of(generator.integers(0, 30, 200), np.arange(200), np.arange(200))
    parts = leave_one_out(events)
    for user in range(30):
        own = events.items[events.users == user].tolist()
        held_out = own[-2:] if len(own) >= 3 else []
        assert parts.train.items[parts.train.users == user].tolist() == own[: len(own) - len(held_out)]
        assert parts.validation.items[parts.validation.users == user].tolist() == held_out[:1]
        assert parts.test.items[parts.test.users == user].tolist() == held_out[1:]
    assert (np.diff(parts.train.times) > 0).all()


def test_who_has_fewer_than_three_events_is_only_learned_from() -> None:
    parts = leave_one_out(Events.of([0, 1, 1, 2, 2, 2], range(6), range(6)))
    assert parts.train.users.tolist() == [0, 1, 1, 2]
    assert parts.validation.items.tolist() == [4]
    assert parts.test.items.tolist() == [5]
