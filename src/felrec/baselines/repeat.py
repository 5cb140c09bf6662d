"""Repeat: the user's own items first, then decayed popularity. Hard to beat where users return to their items."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from felrec.config import Settings
from felrec.data.events import Events, Rows, Times
from felrec.data.pending import spread
from felrec.data.tables.decayed_counts import DecayedCounts
from felrec.data.tables.pair_counts import PairCounts
from felrec.data.tables.table import Stored
from felrec.model_kind import ModelKind
from felrec.recommender import EVERYTHING, Queries, Recommender, Weightless

_HALF_LIVES = (100, 300, 1_000, 3_000, 10_000)  # fewer than for popularity alone: own items decide more
_BLEND = 100.0  # an item that makes up about one per cent of what is taken now weighs as much as having had it once

RepeatOrder = Literal["recency", "frequency", "blend"]


class RepeatSettings(Settings):
    """The user's own items first, then decayed popularity."""

    order: RepeatOrder | None = Field(None, description="chosen on validation unless given")
    half_life: float | None = Field(None, gt=0, description="in events; chosen on validation unless given")
    pause: int = Field(30, ge=0, description="minutes; unless by recency, what was taken since then comes last")


class Own(NamedTuple):
    """What the users of some queries had, one entry per query and item."""

    asked: NDArray[np.int64]  # (M,) which query
    items: Rows  # (M,)
    taken: NDArray[np.int64]  # (M,) how often
    last: NDArray[np.int64]  # (M,) number of the last such event in the log
    minute: NDArray[np.int64]  # (M,) when that was, since 1970


class Repeat(Weightless):
    """Own items by recency, or by how often they were taken with those of the last `pause` minutes put last.

    The rest of the catalogue follows by decayed popularity. With `blend` it does not only follow: what very many take
    now comes before what the user had once.

    >>> repeat = Repeat(RepeatSettings(order="frequency"))
    >>> repeat.observe(Events.of([0, 0, 0, 1, 2], [7, 7, 3, 5, 5], [0, 60, 120, 180, 240]))
    >>> repeat.score(Queries.now(np.array([0]), 9999), np.array([3, 5, 7], dtype=np.int32)).argsort(descending=True)
    tensor([[2, 0, 1]])
    """

    represents = EVERYTHING

    def __init__(self, settings: RepeatSettings | None = None) -> None:
        self.settings = settings or RepeatSettings()
        self.half_life = self.settings.half_life or _HALF_LIVES[1]
        self.reset()

    def reset(self) -> None:
        """Forget all events."""
        self.counts = DecayedCounts(self.half_life)
        self.pairs = PairCounts(last=np.int64, minute=np.int32)  # of users and the items they took

    def observe(self, block: Events) -> None:
        """Count, and remember who took what when."""
        nth = self.counts.events + np.arange(len(block))
        self.pairs.add(block.users, block.items, last=nth, minute=_minutes(block.times))
        self.counts.add(block.items)

    def score(self, queries: Queries, candidates: Rows) -> Tensor:
        """Own items above popularity, what was just taken below it."""
        popular = self._popular(candidates)
        scores = torch.from_numpy(popular).expand(len(queries), -1).clone()
        own = self._own(queries)
        column = np.full(int(max(candidates.max(initial=0), own.items.max(initial=0))) + 1, -1, dtype=np.int64)
        column[candidates] = np.arange(len(candidates))
        at = column[own.items]
        asked = torch.from_numpy(own.asked[at >= 0])
        scores[asked, torch.from_numpy(at[at >= 0])] = torch.from_numpy(self._own_scores(own, queries)[at >= 0])
        return scores

    def _popular(self, items: Rows) -> NDArray[np.float64]:
        """The popularity of items: below 1, so that all own items come first, unless the two are to be blended."""
        counts = self.counts.of(items)
        if self.settings.order == "blend":
            return counts * (_BLEND / self.half_life)
        return 1 - 1 / (1 + np.maximum(counts, 0)) + np.where(counts < 0, counts, 0)  # -inf stays -inf

    def _own(self, queries: Queries) -> Own:
        """What was observed, and on top of it what is pending: later than all that, and at the time of the query."""
        asked, items, rows = self.pairs.of(queries.users)
        stored = Own(asked, items, *(self.pairs[name][rows].astype(np.int64) for name in ("count", "last", "minute")))
        return stored if not len(queries.pending.values) else _with_pending(stored, queries, self.counts.events)

    def _own_scores(self, own: Own, queries: Queries) -> NDArray[np.float64]:
        """One score (M,) per entry: at least 1 for an own item, -1 for what was just taken."""
        if self.settings.order not in ("frequency", "blend"):
            return 1 + own.last.astype(np.float64)
        paused = own.minute > _minutes(queries.times)[own.asked] - self.settings.pause
        popular = np.maximum(self._popular(own.items), 0)  # decides among equally frequent ones
        return np.where(paused & (self.settings.pause > 0), -1.0, own.taken + popular)

    def choices(self) -> Iterator[tuple[dict[str, Any], Recommender]]:
        """Every order with every half-life, unless one of the two was given."""
        for order in get_args(RepeatOrder) if self.settings.order is None else (self.settings.order,):
            for half_life in _HALF_LIVES if self.settings.half_life is None else (self.settings.half_life,):
                settings = self.settings.model_copy(update={"order": order, "half_life": float(half_life)})
                yield settings.model_dump(), Repeat(settings)

    def _tables(self) -> dict[str, Stored]:
        return {"counts.": self.counts, "pairs.": self.pairs}


def _with_pending(stored: Own, queries: Queries, events: int) -> Own:
    """Add the user's own events of the block: one entry per query and item again."""
    at, asked = spread(queries.pending.starts, queries.pending.stops)
    waiting = asked << 32 | queries.pending.values[at]
    keys, entry = np.unique(np.concatenate([stored.asked << 32 | stored.items, waiting]), return_inverse=True)
    taken, last, minute = (np.zeros(len(keys), dtype=np.int64) for _ in range(3))
    np.add.at(taken, entry, np.concatenate([stored.taken, np.ones_like(at)]))
    np.maximum.at(last, entry, np.concatenate([stored.last, events + at]))
    when = queries.times[asked] if queries.pending_times is None else queries.pending_times[at]
    np.maximum.at(minute, entry, np.concatenate([stored.minute, _minutes(when)]))
    return Own(keys >> 32, (keys & 0xFFFFFFFF).astype(np.int32), taken, last, minute)


def _minutes(times: Times) -> NDArray[np.int64]:
    return (times // 60).astype(np.int64)


REPEAT = ModelKind(
    "repeat",
    "the user's own items first, then decayed popularity",
    RepeatSettings,
    lambda settings, seed, device, sizes: Repeat(settings),
)
