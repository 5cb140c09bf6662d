"""Item-kNN by co-occurrence, updated with every event: items that users take shortly before or after each other."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from felrec.config import Settings
from felrec.data.events import Events, Rows
from felrec.data.pending import Pending, spread
from felrec.data.tables.decayed_counts import DecayedCounts
from felrec.data.tables.histories import Histories
from felrec.data.tables.pair_counts import PairCounts
from felrec.data.tables.table import Stored
from felrec.model_kind import ModelKind
from felrec.recommender import EVERYTHING, Queries, Recommender, Weightless

_HALF_LIVES = (300.0, 3_000.0)
_SHARES = (0.1, 1.0)
_AT_ONCE = 500_000  # neighbours summed at a time, which bounds the memory of a block


class ItemKNNSettings(Settings):
    """Item-kNN by co-occurrence."""

    history_length: int = Field(
        10, ge=1, description="number of a user's newest items, for counting pairs and for scoring"
    )
    shrinkage: float = Field(10.0, ge=0, description="makes items with few events less similar to others")
    popular_share: float | None = Field(
        None, gt=0, description="weight of decayed popularity in the score; default: chosen on validation"
    )
    half_life: float | None = Field(None, gt=0, description="of popularity, in events; default: chosen on validation")


class Neighbours(NamedTuple):
    """The neighbours of several items: those of item h are `columns[bounds[h]:bounds[h + 1]]`."""

    bounds: NDArray[np.int64]  # (H + 1,)
    columns: NDArray[np.int64]  # (M,) columns of the candidates
    similarity: NDArray[np.float64]  # (M,)


class ItemKNN(Weightless):
    """Each event counts the pairs of its item and the last items of its user, in both directions.

    The similarity of two items is that count, divided by the square root of the product of their event counts plus
    `shrinkage`. A candidate's score is its similarity to the user's last items, of which the k-th newest has the weight
    1/k, plus a share of its decayed popularity, which decides where no pairs were counted. A repeated item is counted
    as a pair with itself, so that the model learns how often users repeat items.

    >>> knn = ItemKNN()
    >>> knn.observe(Events.of([0, 0, 1, 1, 2, 3], [7, 3, 7, 3, 5, 5], range(6)))
    >>> knn.observe(Events.of([4], [7], [6]))
    >>> knn.score(Queries.now(np.array([4]), 7.0), np.array([3, 5, 7], dtype=np.int32)).argmax().item()
    0
    """

    represents = EVERYTHING

    def __init__(self, settings: ItemKNNSettings | None = None) -> None:
        self.settings = settings or ItemKNNSettings()
        self.reset()

    def reset(self) -> None:
        """Remove all counts."""
        self.popular = DecayedCounts(self.settings.half_life or _HALF_LIVES[0])
        self.events = DecayedCounts(half_life=None)  # of each item
        self.recent = Histories(self.settings.history_length)  # items of each user
        self.together = PairCounts()  # of items, in both directions

    def observe(self, block: Events) -> None:
        """Count the pairs of each event's item and its user's previous items."""
        rows, mask = self.recent.recent(block.users, Pending.within_block(block.users, block.items))
        event, place = np.nonzero(mask)
        earlier, later = rows[event, place], block.items[event]
        other = earlier != later  # a pair of an item with itself has one direction
        self.together.add(np.concatenate([earlier, later[other]]), np.concatenate([later, earlier[other]]))
        self.recent.append(block.users, block.items)
        self.events.add(block.items)
        self.popular.add(block.items)

    def score(self, queries: Queries, candidates: Rows) -> Tensor:
        """Similarity to the user's last items plus a share of popularity; -inf for an item never observed."""
        counts = self.popular.of(candidates)
        popular = 1 - 1 / (1 + np.maximum(counts, 0)) + np.where(counts < 0, counts, 0)  # below 1; -inf stays -inf
        share = self.settings.popular_share or _SHARES[0]
        scores = torch.from_numpy(share * popular).expand(len(queries), -1).clone()
        rows, mask = self.recent.recent(queries.users, queries.pending)
        asked, place = np.nonzero(mask)
        items, which = np.unique(rows[asked, place], return_inverse=True)
        neighbours = self._neighbours(items, candidates)
        weight = 1 / (rows.shape[1] - place)  # the newest item is last
        for piece in _pieces(np.diff(neighbours.bounds)[which]):
            at, of = spread(neighbours.bounds[which[piece]], neighbours.bounds[which[piece] + 1])
            flat = asked[piece][of] * len(candidates) + neighbours.columns[at]
            evidence = weight[piece][of] * neighbours.similarity[at]
            scores.view(-1).index_add_(0, torch.from_numpy(flat), torch.from_numpy(evidence))
        return scores

    def _neighbours(self, items: Rows, candidates: Rows) -> Neighbours:
        """The candidates that were counted together with each of the items."""
        found = self.together.of(items)
        column = np.full(int(max(candidates.max(initial=0), found.others.max(initial=0))) + 1, -1, dtype=np.int64)
        column[candidates] = np.arange(len(candidates))
        columns = column[found.others]
        wanted = np.flatnonzero(columns >= 0)
        wanted = wanted[np.argsort(found.asked[wanted], kind="stable")]  # fast, because these are two sorted runs
        asked, columns = found.asked[wanted], columns[wanted]
        roots = self._roots(items)[asked] * self._roots(candidates)[columns]
        similarity = self.together["count"][found.rows[wanted]] / (roots + self.settings.shrinkage)
        return Neighbours(np.searchsorted(asked, np.arange(len(items) + 1)), columns, similarity)

    def _roots(self, items: Rows) -> NDArray[np.float64]:
        return np.sqrt(np.maximum(self.events.of(items), 0))

    def choices(self) -> Iterator[tuple[dict[str, Any], Recommender]]:
        """Combinations of the weight and the half-life of popularity, unless given."""
        given = self.settings
        half_lives = _HALF_LIVES if given.half_life is None else (given.half_life,)
        shares = _SHARES if given.popular_share is None else (given.popular_share,)
        for half_life, share in product(half_lives, shares):
            settings = given.model_copy(update={"half_life": half_life, "popular_share": share})
            yield settings.model_dump(), ItemKNN(settings)

    def _tables(self) -> dict[str, Stored]:
        return {"popular.": self.popular, "events.": self.events, "recent.": self.recent, "together.": self.together}


def _pieces(lengths: NDArray[np.int64]) -> Iterator[slice]:
    """Consecutive lists with at most about `_AT_ONCE` entries in total."""
    piece = np.cumsum(lengths) // _AT_ONCE
    cuts = [0, *(np.flatnonzero(np.diff(piece)) + 1).tolist(), len(lengths)]
    for start, stop in pairwise(cuts):
        yield slice(start, stop)


ITEM_KNN = ModelKind(
    "item-knn",
    "items taken together with the user's last items",
    ItemKNNSettings,
    lambda settings, seed, device, sizes: ItemKNN(settings),
)
