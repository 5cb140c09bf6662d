"""What users had, while it grows."""

from __future__ import annotations

import numpy as np

from felrec.data.events import Events
from felrec.data.seen import SeenPairs


def test_what_was_added_stays_when_it_is_sorted_in() -> None:
    """Of blocks that are large enough to be sorted in, and of some that wait."""
    rng = np.random.default_rng(0)
    users, items = rng.integers(0, 30, 5_000), rng.integers(0, 400, 5_000)
    seen = SeenPairs.of_events(Events.of(users[:500], items[:500], np.arange(500)))
    for start in range(500, 5_000, 300):
        seen.add(Events.of(users[start : start + 300], items[start : start + 300], np.zeros(300)))
    for user in range(30):
        assert seen.items(user).tolist() == sorted(set(items[users == user].tolist()))
