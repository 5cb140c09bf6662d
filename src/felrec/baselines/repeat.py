"""Repeat: the user's own items first, then decayed popularity. Hard to beat where people come back to what they had."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from felrec.config import RepeatSettings
from felrec.data.decay import HALF_LIVES, DecayedCounts
from felrec.data.events import Events, Rows, Times
from felrec.data.histories import Histories, Pending
from felrec.recommender import EVERYTHING, Change, Queries, Recommender, Tensors, Weightless, as_arrays, as_tensors


class Repeat(Weightless):
    """Own items by recency, or by how often they were taken with those of the last `pause` minutes put last.

    The rest of the catalogue follows by decayed popularity. Own items are those of the last `history_length` events.
    """

    represents = EVERYTHING

    def __init__(self, settings: RepeatSettings | None = None) -> None:
        self.settings = settings or RepeatSettings()
        self.reset()

    def reset(self) -> None:
        """Forget all events."""
        self.counts = DecayedCounts(self.settings.half_life or HALF_LIVES[2])
        self.items = Histories(self.settings.history_length)
        self.minutes = Histories(self.settings.history_length)  # since 1970, beside the items

    def observe(self, block: Events) -> None:
        """Count, and remember who took what when."""
        self.accept(self.foresee(block))

    def foresee(self, block: Events) -> Change:
        """The counts of the items and the histories of the users of the block."""
        users, items = Pending.of_owners(block.users, block.items)
        _, minutes = Pending.of_owners(block.users, _minutes(block.times))
        return {
            **as_tensors(self.counts.foresee(block.items), "counts."),
            **as_tensors(self.items.foresee(users, items), "items."),
            **as_tensors(self.minutes.foresee(users, minutes), "minutes."),
        }

    def accept(self, change: Change) -> None:
        """Write them."""
        for name, part in self._parts().items():
            part.accept(as_arrays(change, f"{name}."))

    def score(self, queries: Queries, candidates: Rows) -> Tensor:
        """Popularity within [0, 1), own items above it, what was just taken below it."""
        popular = torch.from_numpy(_below_one(self.counts.of(candidates)))
        scores = popular.expand(len(queries), -1).clone()
        column = np.full(int(candidates.max(initial=0)) + 1, -1, dtype=np.int64)
        column[candidates] = np.arange(len(candidates))
        rows, mask = self.items.recent(queries.users, queries.pending)  # (B, N)
        own = self._own_scores(rows, mask, queries)
        at = np.where(mask & (rows < len(column)), column[np.where(rows < len(column), rows, 0)], -1)
        query, place = np.nonzero(at >= 0)
        # Ascending, so that of an item's several places the best is written last.
        order = np.argsort(own[query, place], kind="stable")
        query, place = query[order], place[order]
        scores[torch.from_numpy(query), torch.from_numpy(at[query, place])] = torch.from_numpy(own[query, place])
        return scores

    def _own_scores(self, rows: Rows, mask: NDArray[np.bool_], queries: Queries) -> NDArray[np.float64]:
        """One value (B, N) per entry of each history: above 1 for an own item, -1 for what was just taken."""
        if self.settings.order != "frequency":
            return np.broadcast_to(1 + np.arange(rows.shape[1], dtype=np.float64), rows.shape)  # the newest is last
        just_now = np.full(len(queries.pending.values), np.iinfo(np.int32).max, dtype=np.int32)
        pending = Pending(just_now, queries.pending.starts, queries.pending.stops)  # of this block: taken just now
        minutes, _ = self.minutes.recent(queries.users, pending)
        recent = mask & (minutes > (_minutes(queries.times) - self.settings.pause)[:, None]) & (self.settings.pause > 0)
        same = (rows[:, :, None] == rows[:, None, :]) & mask[:, None, :]  # (B, N, N)
        paused = (same & recent[:, None, :]).any(axis=2)
        popular = _below_one(self.counts.of(rows.ravel())).reshape(rows.shape)  # decides among equally frequent ones
        return np.where(paused, -1.0, 1 + same.sum(axis=2) + popular)

    def choices(self) -> Iterator[tuple[dict[str, Any], Recommender]]:
        """Both orders, each with every half-life, unless one of the two was given."""
        for order in ("recency", "frequency") if self.settings.order is None else (self.settings.order,):
            for half_life in HALF_LIVES if self.settings.half_life is None else (self.settings.half_life,):
                settings = self.settings.model_copy(update={"order": order, "half_life": float(half_life)})
                yield settings.model_dump(), Repeat(settings)

    def state(self) -> Tensors:
        """Counts and histories."""
        return {
            f"{name}.{key}": torch.from_numpy(values)
            for name, part in self._parts().items()
            for key, values in part.state().items()
        }

    def load_state(self, state: Tensors) -> None:
        """Put back what `state` returned."""
        for name, part in self._parts().items():
            own = {key.removeprefix(f"{name}."): t.numpy() for key, t in state.items() if key.startswith(f"{name}.")}
            part.load_state(own)

    def _parts(self) -> dict[str, DecayedCounts | Histories]:
        return {"counts": self.counts, "items": self.items, "minutes": self.minutes}


def _below_one(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    return 1 - 1 / (1 + np.maximum(counts, 0)) + np.where(counts < 0, counts, 0)  # -inf stays -inf


def _minutes(times: Times) -> Rows:
    return (times // 60).astype(np.int32)
