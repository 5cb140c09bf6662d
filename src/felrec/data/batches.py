"""How an epoch is cut into batches.

A model says which cut it learns from. Batches depend on the settings, the seed and the epoch alone, never on what
was drawn before, so that a resumed epoch is the same epoch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from felrec.data.events import Events


class Batch(Protocol):
    """What a step learns from; its length is the number of events."""

    def __len__(self) -> int: ...


B_co = TypeVar("B_co", bound=Batch, covariant=True)


class Batches(Protocol[B_co]):
    """The batches of one epoch, by step."""

    def __len__(self) -> int:
        """How many there are."""
        ...

    def __getitem__(self, step: int, /) -> B_co:
        """The batch of a step, counted from 0."""
        ...


@dataclass(frozen=True)
class TimeBatch:
    """Consecutive events, and which of them to learn from: all of them if `trained` is None."""

    events: Events
    trained: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.events)


class InTime:
    """Batches in time order, of which a random `share` of the events is learned from.

    >>> events = Events.of(range(9), range(9), range(9))
    >>> [len(batch) for batch in InTime(events, 4)]
    [4, 5]
    """

    def __init__(self, events: Events, batch_size: int, share: float = 1.0, seed: tuple[int, ...] = ()) -> None:
        self.events, self.share, self.seed = events, share, seed
        self.bounds = batch_bounds(len(events), batch_size)

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def __getitem__(self, step: int) -> TimeBatch:
        if not 0 <= step < len(self):
            raise IndexError(step)
        events = self.events[self.bounds[step] : self.bounds[step + 1]]
        return TimeBatch(events, trained_events(len(events), self.share, (*self.seed, step)))


def trained_events(events: int, share: float, seed: tuple[int, ...]) -> NDArray[np.bool_] | None:
    """Which events of a batch to learn from, a random `share` of them; None is all."""
    if share == 1:
        return None
    count = min(events, max(2, round(share * events)))  # batch statistics need two
    trained = np.zeros(events, dtype=bool)
    trained[np.random.default_rng(seed).choice(events, count, replace=False)] = True
    return trained


def batch_bounds(events: int, batch_size: int) -> list[int]:
    """Where batches begin and end: no event is dropped, and a remainder of one joins the batch before it.

    >>> batch_bounds(10, 4), batch_bounds(9, 4)
    ([0, 4, 8, 10], [0, 4, 9])
    """
    bounds = [*range(0, events, batch_size), events]
    if len(bounds) > 2 and bounds[-1] - bounds[-2] == 1:
        del bounds[-2]
    return bounds
