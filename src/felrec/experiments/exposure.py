"""Exposure: how the top-ten lists of a recommender are distributed over the catalogue."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from felrec.data.events import Events, Rows
from felrec.data.split import Split
from felrec.evaluation.lists import coverage, gini
from felrec.evaluation.rules import BLOCK
from felrec.evaluation.seen import SeenItems
from felrec.recommender import Queries, Recommender

K = 10
DECILES = 10


@dataclass(frozen=True)
class Exposure:
    """How often each item was recommended, and recommendations by popularity at that time."""

    counts: NDArray[np.int64]  # by item of the catalogue, including items never recommended
    deciles: NDArray[np.int64]  # recommendations by decile; the first has the items with most events so far

    def to_json(self) -> dict[str, Any]:
        """The numbers for tables and JSON."""
        return {
            "shown": int(self.counts.sum()),
            "catalogue": len(self.counts),
            "deciles": (self.deciles / max(1, self.deciles.sum())).tolist(),
            "gini": gini(self.counts),
            "coverage": coverage(self.counts),
        }


def decile_of(events: NDArray[np.int64]) -> NDArray[np.int64]:
    """The popularity decile of each item by its number of events; ties share their middle rank.

    >>> decile_of(np.array([1, 90, 80, 70, 60, 50, 40, 30, 20, 10])).tolist()
    [9, 0, 1, 2, 3, 4, 5, 6, 7, 8]
    >>> decile_of(np.array([7, 7, 7, 7])).tolist()
    [3, 3, 3, 3]
    """
    ordered = np.sort(events)
    more = len(events) - np.searchsorted(ordered, events, side="right")
    equal = np.searchsorted(ordered, events, side="right") - np.searchsorted(ordered, events, side="left")
    return (DECILES * (more + (equal - 1) / 2) / len(events)).astype(np.int64)


def taken(split: Split) -> Exposure:
    """The distribution of the test events themselves, in the same terms."""
    return _count(split, lambda block, begin, catalogue: block.items)


def exposure(
    recommender: Recommender, split: Split, *, exclude_seen: bool, progress: Callable[[int], None] | None = None
) -> Exposure:
    """Run the test part as protocol `online` does, and count the ten best items of each query."""
    seen = SeenItems(split.log.events) if exclude_seen else None

    def shown(block: Events, begin: int, catalogue: Rows) -> Rows:
        scores = recommender.score(Queries.before_each(block), catalogue).float()
        if seen is not None:
            positions, items = seen.before(begin, begin + len(block))
            column = np.full(split.log.n_items, -1)
            column[catalogue] = np.arange(len(catalogue))
            known = column[items] >= 0
            scores = scores.clone()
            scores[torch.from_numpy(positions[known]), torch.from_numpy(column[items[known]])] = -torch.inf
        best = scores.topk(min(K, scores.shape[1]), dim=1)
        recommender.observe(block)
        if progress:
            progress(len(block))
        listed: Rows = catalogue[best.indices[best.values > -torch.inf].cpu().numpy()]
        return listed

    return _count(split, shown)


def _count(split: Split, shown: Callable[[Events, int, Rows], Rows]) -> Exposure:
    events, (start, stop) = split.log.events, split.bounds("test")
    so_far = np.bincount(events.items[:start], minlength=split.log.n_items)
    counts, deciles = np.zeros(split.log.n_items, dtype=np.int64), np.zeros(DECILES, dtype=np.int64)
    for begin in range(start, stop, BLOCK["online"]):
        block = events[begin : min(begin + BLOCK["online"], stop)]
        catalogue = np.flatnonzero(so_far).astype(np.int32)
        decile = np.full(split.log.n_items, -1)
        decile[catalogue] = decile_of(so_far[catalogue])
        items = shown(block, begin, catalogue)
        items = items[decile[items] >= 0]  # at its first event an item is not in the catalogue yet
        np.add.at(counts, items, 1)
        np.add.at(deciles, decile[items], 1)
        recommendable = so_far > 0
        np.add.at(so_far, block.items, 1)
    return Exposure(counts[recommendable], deciles)
