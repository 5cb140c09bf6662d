"""Batches of parallel sessions: each step uses the next event of several users."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from felrec.data.batches import TimeBatch, trained_events
from felrec.data.events import Events
from felrec.data.pending import grouped


class Sessions:
    """Each batch is the next event of `batch_size` users, drawn at random among those who have events left.

    No user occurs twice in a batch. Batches become small towards the end, when only long sessions are left. A random
    `share` of each batch is trained on; all of its sessions advance.

    >>> batches = Sessions(Events.of([7, 8, 7, 7], [1, 2, 3, 4], range(4)), 2)
    >>> [sorted(batch.events.items.tolist()) for batch in batches]
    [[1, 2], [3], [4]]
    """

    def __init__(self, events: Events, batch_size: int, share: float = 1.0, seed: tuple[int, ...] = ()) -> None:
        self.events, self.share, self.seed = events, share, seed
        self._steps = _schedule(events, batch_size, np.random.default_rng(seed))

    def __len__(self) -> int:
        return len(self._steps)

    def __getitem__(self, step: int) -> TimeBatch:
        if not 0 <= step < len(self):
            raise IndexError(step)
        events = self.events[self._steps[step]]
        return TimeBatch(events, trained_events(len(events), self.share, (*self.seed, step)))


def _schedule(events: Events, batch_size: int, generator: np.random.Generator) -> list[NDArray[np.int64]]:
    """The events of each step."""
    order, first = grouped(events.users)
    place = np.unique(first)  # index of each session's next event
    end = np.append(place[1:], len(order))
    unfinished, steps = np.arange(len(place)), []
    while len(unfinished):
        chosen = unfinished
        if len(unfinished) > batch_size:
            chosen = generator.choice(unfinished, batch_size, replace=False, shuffle=False)
        steps.append(order[place[chosen]])
        place[chosen] += 1
        unfinished = unfinished[place[unfinished] < end[unfinished]]
    return steps
