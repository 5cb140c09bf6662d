"""Repetition: what a user had before, how often, how long ago."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from felrec.abilities import ErasureContext
from felrec.data.events import RowChange, Rows, Times, prefixed
from felrec.data.pending import spread
from felrec.data.tables.top_k_counts import TopKCounts
from felrec.model.signals.pairs import Candidates, Pairs
from felrec.model.signals.recent import BlockView, RecentEvents
from felrec.model.signals.signal import Floats, Ints, OneTable, one_row
from felrec.recommender import Queries

_TABLE = "own_"
_FADE = 0.99  # of a count, with each event of its user
_NEVER = np.float32(1e7)  # minutes since something that has not happened
_TIMES, _BACK = 5, 8  # buckets of how often and of how long ago


class Repetition(OneTable):
    """Counts of each user's own items, with the place and the minute of the latest event of each."""

    names = (
        "repetition.is_own",
        "repetition.log_count",
        "repetition.log_back",
        "repetition.share",
        "repetition.is_newest",
        "repetition.log_minutes",
        "repetition.same_sitting",
        "repetition.log_user_events",
        "repetition.log_idle_minutes",
    )
    bucket_count = _TIMES * _BACK * 2

    def __init__(self, size: int, recent: RecentEvents) -> None:
        self.counts, self._recent = TopKCounts(size, _FADE, marks=("nth", "minute")), recent
        super().__init__(self.counts, _TABLE)

    def find(self, queries: Queries, candidates: Candidates) -> OwnPairs:
        """The user's own items, pending ones included."""
        return OwnPairs(self._stored(queries).with_more(_pending(queries)), candidates)

    def had(self, users: Rows, items: Rows) -> NDArray[np.bool_]:
        """Whether each user (B,) is known to have had an item (B,)."""
        had: NDArray[np.bool_] = (self.counts.of(users)["other"] == items[:, None]).any(axis=1)
        return had

    def _stored(self, queries: Queries) -> OwnItems:
        rows = self.counts.of(queries.users)
        query, slot = np.nonzero(rows["other"] >= 0)
        place = self._recent.taken(queries)[query] - rows["nth"][query, slot]
        minutes = _minutes_since(rows["minute"][query, slot], queries.times[query])
        return OwnItems(
            query,
            rows["other"][query, slot].astype(np.int64),
            rows["count"][query, slot],
            place.astype(np.float32),
            minutes,
        )

    def change(self, block: BlockView) -> RowChange:
        """The counts of the users that a block touches."""
        events = block.events
        marks = {"nth": block.taken.astype(np.int32), "minute": (events.times // 60).astype(np.int32)}
        return prefixed(_TABLE, self.counts.change(events.users, events.items, **marks))

    def forget(self, user: int, context: ErasureContext) -> RowChange:
        """No counts for the user."""
        return prefixed(_TABLE, self.counts.blank(one_row(user)))


@dataclass(frozen=True)
class OwnItems:
    """Items that users had: one entry per user and item, or several, of which the latest counts."""

    query: Ints
    item: Ints
    count: Floats
    back: Floats  # events of the user since, this one included
    minutes: Floats  # since

    def with_more(self, other: OwnItems) -> OwnItems:
        """Both together."""
        both = ((getattr(self, field.name), getattr(other, field.name)) for field in fields(self))
        return OwnItems(*map(np.concatenate, both))


def _pending(queries: Queries) -> OwnItems:
    """What users took since their counts were last changed."""
    waiting, query = spread(queries.pending.starts, queries.pending.stops)
    lengths = queries.pending.stops - queries.pending.starts
    back = np.repeat(np.cumsum(lengths), lengths) - np.arange(len(waiting))
    minutes = np.zeros(len(waiting), np.float32)
    if queries.pending_times is not None:
        minutes = _minutes_since(queries.pending_times[waiting] // 60, queries.times[query])
    items = queries.pending.values[waiting].astype(np.int64)
    return OwnItems(query, items, np.ones(len(waiting), np.float32), back.astype(np.float32), minutes)


Facts = tuple[Floats, NDArray[np.floating], NDArray[np.floating], NDArray[np.floating]]


class OwnPairs:
    """Own items among the candidates."""

    own_items = True

    def __init__(self, own: OwnItems, candidates: Candidates) -> None:
        columns = candidates.columns(own.item)
        self._own, self._at = own, np.flatnonzero(columns >= 0)
        self._facts: Facts | None = None
        self.keys = own.query[self._at] * len(candidates) + columns[self._at]

    def features(self, pairs: Pairs) -> Floats:
        """Features (M, F) by the names of `Repetition`."""
        count, back, minutes, newest = self._looked_up(pairs)
        is_own = (count > 0).astype(np.float32)
        user_events = np.maximum(pairs.taken[pairs.query], 1)
        return np.stack(
            [
                is_own,
                np.log1p(count),
                is_own * np.log1p(back),
                count / user_events,
                is_own * (back <= 1),
                is_own * np.log1p(minutes) / 5,
                is_own * (minutes == newest),  # taken in the same sitting as the user's last event
                np.log1p(user_events) / 3,
                np.log1p(newest) / 5,
            ],
            axis=1,
        ).astype(np.float32)

    def buckets(self, pairs: Pairs, features: Floats) -> Ints:
        """By how often, how many events ago, and whether in the last sitting."""
        count, back, minutes, newest = self._looked_up(pairs)
        times = np.clip(np.log2(np.maximum(count, 1)).round(), 0, _TIMES - 1).astype(np.int64)
        ago = np.clip(np.log2(np.maximum(back, 1)), 0, _BACK - 1).astype(np.int64)
        return np.where(count > 0, (times * _BACK + ago) * 2 + (minutes == newest), -1)

    def _looked_up(self, pairs: Pairs) -> Facts:
        """Of each pair (M,): count, events since, minutes since; and minutes since the user's newest event."""
        if self._facts is None:
            self._facts = self._look_up(pairs)
        return self._facts

    def _look_up(self, pairs: Pairs) -> Facts:
        own, at, pair = self._own, self._at, pairs.numbers(self.keys)
        count = np.bincount(pair, own.count[at], len(pairs)).astype(np.float32)
        back, minutes = np.full(len(pairs), _NEVER), np.full(len(pairs), _NEVER)
        newest = np.full(len(pairs.taken), _NEVER)
        np.minimum.at(back, pair, own.back[at])
        np.minimum.at(minutes, pair, own.minutes[at])
        np.minimum.at(newest, own.query, own.minutes)
        return count, back, minutes, newest[pairs.query]


def _minutes_since(minute: NDArray[np.number], now: Times) -> Floats:
    """Whole minutes."""
    minutes: Floats = np.maximum(now // 60 - minute, 0).astype(np.float32)
    return minutes
