"""Popularity and decayed popularity: no weights, no personalisation, and hard to beat on fast catalogues."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from pydantic import Field
from torch import Tensor

from felrec.abilities import ErasureContext
from felrec.config import Settings
from felrec.data.events import Events, RowChange, Rows
from felrec.data.tables.decayed_counts import HALF_LIFE_CHOICES, DecayedCounts
from felrec.data.tables.table import Stored, TableState
from felrec.model_kind import ModelKind
from felrec.recommender import EVERYTHING, Queries, Recommender, Weightless


class PopularitySettings(Settings):
    """Popularity has nothing to set."""


class DecayedPopularitySettings(Settings):
    """Decayed popularity."""

    half_life: float | None = Field(None, gt=0, description="in events; default: chosen on validation")


class Popularity(Weightless):
    """Score of an item = number of its events so far.

    >>> import numpy as np
    >>> popularity = Popularity()
    >>> popularity.observe(Events.of([0, 1, 2], [7, 7, 3], [0, 1, 2]))
    >>> popularity.score(Queries.now(np.array([5]), 3.0), np.array([3, 7])).tolist()
    [[1.0, 2.0]]
    """

    represents = EVERYTHING

    def __init__(self, settings: PopularitySettings | None = None) -> None:
        self.counts = DecayedCounts(half_life=None)

    def score(self, queries: Queries, candidates: Rows) -> Tensor:
        """The same row for every user; -inf for an item never observed."""
        return torch.from_numpy(self.counts.of(candidates)).expand(len(queries), -1)

    def observe(self, block: Events) -> None:
        """Count the items of a block."""
        self.counts.add(block.items)

    def change(self, block: Events) -> RowChange:
        """The new counts of the items of a block."""
        return self.counts.change(block.items)

    def apply_change(self, change: RowChange) -> None:
        """Write the counts."""
        self.counts.apply_change(change)

    def view(self) -> TableState:
        """The counts, without a copy."""
        return self.counts.view()

    def forget(self, user: int, context: ErasureContext) -> RowChange:
        """The counts of the user's items, without the user's events."""
        return self.counts.forget(context.items, context.taken, context.left)

    def reset(self) -> None:
        """Remove all counts."""
        self.counts.clear()

    def _tables(self) -> dict[str, Stored]:
        return {"": self.counts}


class DecayedPopularity(Popularity):
    """Score of an item = its event count, where weights halve with every `half_life` events of the log."""

    def __init__(self, settings: DecayedPopularitySettings | None = None) -> None:
        self.counts = DecayedCounts((settings or DecayedPopularitySettings()).half_life or HALF_LIFE_CHOICES[2])

    def choices(self) -> Iterator[tuple[dict[str, Any], Recommender]]:
        """Half-lives from 30 to 100,000 events."""
        for half_life in HALF_LIFE_CHOICES:
            settings = DecayedPopularitySettings(half_life=half_life)
            yield settings.model_dump(), DecayedPopularity(settings)


POPULARITY = ModelKind(
    "popularity",
    "number of events of an item so far",
    PopularitySettings,
    lambda settings, seed, device, sizes: Popularity(settings),
)
DECAYED_POPULARITY = ModelKind(
    "decayed-popularity",
    "event count of an item, with exponential decay",
    DecayedPopularitySettings,
    lambda settings, seed, device, sizes: DecayedPopularity(settings),
)
