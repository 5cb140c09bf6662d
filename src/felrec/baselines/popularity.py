"""Popularity and decayed popularity: no weights, no personalisation, and hard to beat on fast catalogues."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from felrec.config import DecayedPopularitySettings, PopularitySettings
from felrec.data.events import Events, Rows
from felrec.recommender import EVERYTHING, Queries, Recommender, Tensors

HALF_LIVES = (30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)


class Popularity:
    """Score of an item = number of its events so far.

    >>> popularity = Popularity()
    >>> popularity.observe(Events.of([0, 1, 2], [7, 7, 3], [0, 1, 2]))
    >>> popularity.score(Queries.now(np.array([5]), 3.0), np.array([3, 7])).tolist()
    [[1.0, 2.0]]
    """

    represents = EVERYTHING

    def __init__(self, settings: PopularitySettings | None = None) -> None:
        self._mass = np.zeros(0)  # (items,) float64

    def score(self, queries: Queries, candidates: Rows) -> Tensor:
        """The same row for everyone, -inf for an item never observed."""
        known = candidates < len(self._mass)
        mass = np.full(len(candidates), -np.inf)
        mass[known] = self._mass[candidates[known]]
        mass[mass == 0] = -np.inf
        return torch.from_numpy(mass).expand(len(queries), -1)

    def observe(self, block: Events) -> None:
        """Count."""
        self._add(block.items, np.ones(len(block)))

    def observe_then_score(self, block: Events, candidates: Rows) -> Tensor:
        """The published order: the block is counted before it is scored."""
        self.observe(block)
        return self.score(Queries.before_each(block), candidates)

    def reset(self) -> None:
        """Forget all counts."""
        self._mass = np.zeros(0)

    def state(self) -> Tensors:
        """The counts."""
        return {"mass": torch.from_numpy(self._mass.copy())}

    def load_state(self, state: Tensors) -> None:
        """Put back what `state` returned."""
        self._mass = state["mass"].numpy().copy()

    def weights(self) -> Tensors:
        """None."""
        return {}

    def load_weights(self, weights: Tensors) -> None:
        """Nothing to load."""

    def parameter_count(self) -> int:
        """Zero."""
        return 0

    def _add(self, items: Rows, amounts: np.ndarray[tuple[int], np.dtype[np.float64]]) -> None:
        missing = int(items.max(initial=-1)) + 1 - len(self._mass)
        if missing > 0:
            self._mass = np.concatenate([self._mass, np.zeros(missing)])
        np.add.at(self._mass, items, amounts)


class DecayedPopularity(Popularity):
    """Score of an item = its events, each weighing half as much after every `half_life` events of the log."""

    def __init__(self, settings: DecayedPopularitySettings | None = None) -> None:
        super().__init__()
        self.half_life = (settings or DecayedPopularitySettings()).half_life or HALF_LIVES[2]

    def observe(self, block: Events) -> None:
        """Age everything by the block, then add its events, each aged by those after it."""
        self._mass *= 0.5 ** (len(block) / self.half_life)
        self._add(block.items, 0.5 ** (np.arange(len(block) - 1, -1, -1) / self.half_life))

    def choices(self) -> Iterator[tuple[dict[str, float], Recommender]]:
        """Half-lives from 30 to 100,000 events."""
        for half_life in HALF_LIVES:
            settings = {"half_life": float(half_life)}
            yield settings, DecayedPopularity(DecayedPopularitySettings(half_life=half_life))
