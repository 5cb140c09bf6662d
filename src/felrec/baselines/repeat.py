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
from felrec.data.events import BEGINNING, Events, Rows, Times
from felrec.data.pending import spread
from felrec.data.tables.decayed_counts import DecayedCounts
from felrec.data.tables.pair_counts import PairCounts
from felrec.data.tables.table import Stored
from felrec.model_kind import ModelKind
from felrec.recommender import EVERYTHING, Queries, Recommender, Weightless

_HALF_LIVES = (100, 300, 1_000, 3_000, 10_000)  # fewer than for popularity alone, which matters less here
_BLEND = 100.0  # an item with about one per cent of current events weighs as much as one earlier event of the user

RepeatOrder = Literal["recency", "frequency", "blend"]


class RepeatSettings(Settings):
    """The user's own items first, then decayed popularity."""

    order: RepeatOrder | None = Field(None, description="order of own items; default: chosen on validation")
    half_life: float | None = Field(None, gt=0, description="in events; default: chosen on validation")
    pause: int = Field(30, ge=0, description="minutes; items of the last minutes come last (not with recency)")


class Own(NamedTuple):
    """The own items of the users of queries, one entry per query and item."""

    asked: NDArray[np.int64]  # (M,) index of the query
    items: Rows  # (M,)
    taken: NDArray[np.int64]  # (M,) number of events
    last: NDArray[np.int64]  # (M,) number of the last of these events in the log
    minute: NDArray[np.int64]  # (M,) its time in minutes since 1970


class Repeat(Weightless):
    """Own items by recency, or by frequency with items of the last `pause` minutes at the end.

    The rest of the catalogue follows by decayed popularity. With `blend`, very popular items rank above items that the
    user had once.

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
        """Remove all counts."""
        self.counts = DecayedCounts(self.half_life)
        self.pairs = PairCounts(last=np.int64, minute=np.int32)  # of users and items

    def observe(self, block: Events) -> None:
        """Count the items, and record the pairs of users and items with their times."""
        nth = self.counts.events + np.arange(len(block))
        self.pairs.add(block.users, block.items, last=nth, minute=_minutes(block.times))
        self.counts.add(block.items)

    def score(self, queries: Queries, candidates: Rows) -> Tensor:
        """Own items rank above popular items, recently taken ones below them."""
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
        """The popularity of items: below 1, so that all own items come first, except with `blend`."""
        counts = self.counts.of(items)
        if self.settings.order == "blend":
            return counts * (_BLEND / self.half_life)
        return 1 - 1 / (1 + np.maximum(counts, 0)) + np.where(counts < 0, counts, 0)  # -inf stays -inf

    def _own(self, queries: Queries) -> Own:
        """Own items from observed events, and from pending events, which are later."""
        asked, items, rows = self.pairs.of(queries.users)
        stored = Own(asked, items, *(self.pairs[name][rows].astype(np.int64) for name in ("count", "last", "minute")))
        return stored if not len(queries.pending.values) else _with_pending(stored, queries, self.counts.events)

    def _own_scores(self, own: Own, queries: Queries) -> NDArray[np.float64]:
        """One score (M,) per entry: at least 1 for an own item, -1 for a recently taken one."""
        if self.settings.order not in ("frequency", "blend"):
            return 1 + own.last.astype(np.float64)
        paused = own.minute > _minutes(queries.times)[own.asked] - self.settings.pause
        popular = np.maximum(self._popular(own.items), 0)  # breaks ties of frequency
        return np.where(paused & (self.settings.pause > 0), -1.0, own.taken + popular)

    def choices(self) -> Iterator[tuple[dict[str, Any], Recommender]]:
        """Every combination of order and half-life, unless given."""
        for order in get_args(RepeatOrder) if self.settings.order is None else (self.settings.order,):
            for half_life in _HALF_LIVES if self.settings.half_life is None else (self.settings.half_life,):
                settings = self.settings.model_copy(update={"order": order, "half_life": float(half_life)})
                yield settings.model_dump(), Repeat(settings)

    def _tables(self) -> dict[str, Stored]:
        return {"counts.": self.counts, "pairs.": self.pairs}


def _with_pending(stored: Own, queries: Queries, events: int) -> Own:
    """Merge the user's pending events into the entries, which stay one per query and item."""
    at, asked = spread(queries.pending.starts, queries.pending.stops)
    waiting = asked << 32 | queries.pending.values[at]
    keys, entry = np.unique(np.concatenate([stored.asked << 32 | stored.items, waiting]), return_inverse=True)
    taken, last = (np.zeros(len(keys), dtype=np.int64) for _ in range(2))
    minute = np.full(len(keys), int(BEGINNING // 60))
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
