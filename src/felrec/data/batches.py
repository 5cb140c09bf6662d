"""How an epoch is divided into batches.

Each model chooses its kind of batches. They depend only on the settings, the seed and the epoch, never on earlier
random draws, so that a resumed epoch has the same batches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from felrec.data.events import Events


class Batch(Protocol):
    """The training data of one step; its length is the number of events."""

    def __len__(self) -> int: ...


B_co = TypeVar("B_co", bound=Batch, covariant=True)


class Batches(Protocol[B_co]):
    """The batches of one epoch, by step."""

    def __len__(self) -> int:
        """Number of batches."""
        ...

    def __getitem__(self, step: int, /) -> B_co:
        """The batch of a step, counted from 0."""
        ...


@dataclass(frozen=True)
class TimeBatch:
    """Consecutive events, and which of them to train on: all of them if `trained` is None."""

    events: Events
    trained: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.events)


class InTime:
    """Batches in time order; a random `share` of the events of each is trained on.

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
    """Choose a random `share` of a batch's events to train on; None means all of them."""
    if share == 1:
        return None
    count = min(events, max(2, round(share * events)))  # batch statistics need two
    trained = np.zeros(events, dtype=bool)
    trained[np.random.default_rng(seed).choice(events, count, replace=False)] = True
    return trained


def batch_bounds(events: int, batch_size: int) -> list[int]:
    """Boundaries of batches: no event is dropped, and a remainder of one joins the batch before it.

    >>> batch_bounds(10, 4), batch_bounds(9, 4)
    ([0, 4, 8, 10], [0, 4, 9])
    """
    bounds = [*range(0, events, batch_size), events]
    if len(bounds) > 2 and bounds[-1] - bounds[-2] == 1:
        del bounds[-2]
    return bounds
