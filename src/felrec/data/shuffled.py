"""An epoch in random order."""

from __future__ import annotations

import numpy as np

from felrec.data.batches import batch_bounds
from felrec.data.events import Events


class Shuffled:
    """Batches of a random `share` of the events, drawn without replacement.

    >>> batches = Shuffled(Events.of(range(9), range(9), range(9)), 4)
    >>> [len(batch) for batch in batches], sorted(user for batch in batches for user in batch.users.tolist())
    ([4, 5], [0, 1, 2, 3, 4, 5, 6, 7, 8])
    """

    def __init__(self, events: Events, batch_size: int, share: float = 1.0, seed: tuple[int, ...] = ()) -> None:
        self.events = events
        count = max(1, round(share * len(events)))
        self._order = np.random.default_rng(seed).permutation(len(events))[:count]
        self._bounds = batch_bounds(count, batch_size)

    def __len__(self) -> int:
        return len(self._bounds) - 1

    def __getitem__(self, step: int) -> Events:
        if not 0 <= step < len(self):
            raise IndexError(step)
        return self.events[np.sort(self._order[self._bounds[step] : self._bounds[step + 1]])]  # in time order again
