"""Why this user might take that item: they had it before, or others took it together with what they had last.

Only a few hundred items of a catalogue have such a reason. Each is a pair, of a query and a candidate, with features
that a small network turns into a score.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from felrec.data.events import Events, RowChange, Rows, Times
from felrec.data.pending import spread
from felrec.data.tables.histories import Histories
from felrec.data.tables.top_k_counts import TopKCounts
from felrec.model.counts import NEAR_WINDOW, Counts
from felrec.model.horizons import Floats
from felrec.model.rates import EVERY, KINDS, Cells, cells
from felrec.recommender import Queries

NEXT_WINDOW = 2  # newest items from which the items that came right after them are looked up
_OWN, _REACHED = 9, 7
FEATURES = _OWN + 2 * _REACHED
_NEVER = np.float32(1e7)  # minutes since something that has not happened
_AT_ONCE = 1 << 24  # pairs of a query and a candidate that are gone through together
_FAINT = 1e-3  # similarities below this look the same

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Catalogue:
    """The candidates of a query, by row and by column."""

    candidates: Rows  # (C,)
    columns: Ints  # of each row, -1 where it is no candidate; the last entry is nobody's
    events: Floats  # (C,) of each candidate so far

    @classmethod
    def of(cls, candidates: Rows, histories: Histories) -> Catalogue:
        """Index candidates; `histories` are those of the items."""
        rows = max(int(candidates.max(initial=-1)) + 1, histories.owners)
        columns = np.full(rows + 1, -1, dtype=np.int64)
        columns[candidates] = np.arange(len(candidates))
        return cls(candidates, columns, histories.counts(candidates).astype(np.float32))


@dataclass(frozen=True)
class Evidence:
    """Pairs of a query and a candidate with their features."""

    query: Ints  # (M,)
    column: Ints  # (M,)
    features: Floats  # (M, FEATURES)

    def cells(self) -> Cells:
        """Which kind of evidence each pair has, as rates are kept of it."""
        told = self.features.T
        times, back, sitting = np.expm1(told[1]), np.expm1(told[2]), told[6]
        return cells(times, back, sitting, near=told[_OWN], after=told[_OWN + _REACHED + 2])


@dataclass(frozen=True)
class _Own:
    """What each user had, one entry per user and item, or several: their latest is what counts."""

    query: Ints
    item: Ints
    count: Floats
    back: Floats  # the user's events since, this one included
    minutes: Floats  # since


def gather(queries: Queries, counts: Counts, among: Catalogue) -> Evidence:
    """All pairs for which there is evidence."""
    width = len(among.candidates)
    had = _own_items(queries, counts.own, counts.users)
    own_column = among.columns[np.minimum(had.item, len(among.columns) - 1)]
    own_at = np.flatnonzero(own_column >= 0)
    own_key = had.query[own_at] * width + own_column[own_at]
    near = _Reached.of(queries, counts.near, NEAR_WINDOW, counts, among)
    after = _Reached.of(queries, counts.next, NEXT_WINDOW, counts, among)
    is_pair = np.zeros(len(queries) * width, dtype=bool)
    is_pair[own_key] = is_pair[near.key] = is_pair[after.key] = True
    pairs = np.flatnonzero(is_pair)
    number = np.empty(len(is_pair), dtype=np.int32)
    number[pairs] = np.arange(len(pairs), dtype=np.int32)
    query, column = np.divmod(pairs, max(1, width))
    taken = (counts.users.counts(queries.users) + queries.pending.stops - queries.pending.starts).astype(np.float32)
    of_own = _own_features(had, own_at, number[own_key], query, taken)
    events = among.events[column]
    of_reached = [reached.features(number[reached.key], query, events) for reached in (near, after)]
    return Evidence(query, column, np.concatenate([of_own, *of_reached], axis=1))


def come_true(block: Events, counts: Counts) -> RowChange:
    """The rates once the block is taken in: for some of its events, what spoke for which items, and which was taken."""
    looked_at = np.arange(-counts.horizons.events % EVERY, len(block), EVERY)
    if not len(looked_at):
        return counts.change_rates(np.zeros((0, KINDS), dtype=np.int64), np.zeros(0, dtype=bool), events=0)
    among = Catalogue.of(np.arange(counts.items.owners, dtype=np.int32), counts.items)
    asked, at_once = Queries.before_each(block), max(1, _AT_ONCE // max(1, len(among.candidates)))
    some = [looked_at[start : start + at_once] for start in range(0, len(looked_at), at_once)]
    pairs = [gather(asked[events], counts, among) for events in some]
    taken = [found.column == block.items[events][found.query] for events, found in zip(some, pairs, strict=True)]
    return counts.change_rates(
        np.concatenate([found.cells() for found in pairs]), np.concatenate(taken), events=len(looked_at)
    )


def _own_items(queries: Queries, own: TopKCounts | None, users: Histories) -> _Own:
    """The user's tally, and what they took since."""
    waiting, query = spread(queries.pending.starts, queries.pending.stops)
    lengths = queries.pending.stops - queries.pending.starts
    back = np.repeat(np.cumsum(lengths), lengths) - np.arange(len(waiting))
    ones, since = np.ones(len(waiting), np.float32), np.zeros(len(waiting), np.float32)
    if queries.pending_times is not None:
        since = _minutes(queries.times[query], queries.pending_times[waiting] // 60)
    pending = _Own(query, queries.pending.values[waiting].astype(np.int64), ones, back.astype(np.float32), since)
    if own is None:
        nothing = np.zeros(0, dtype=np.float32)
        return _Own(nothing.astype(np.int64), nothing.astype(np.int64), nothing, nothing, nothing)
    rows = own.of(queries.users)
    asked, slot = np.nonzero(rows["other"] >= 0)
    taken = users.counts(queries.users) + lengths
    minutes = _minutes(queries.times[asked], rows["minute"][asked, slot])
    stored = _Own(
        asked,
        rows["other"][asked, slot].astype(np.int64),
        rows["count"][asked, slot],
        (taken[asked] - rows["nth"][asked, slot]).astype(np.float32),
        minutes,
    )
    return _Own(*(np.concatenate(parts) for parts in zip(vars(stored).values(), vars(pending).values(), strict=True)))


def _own_features(had: _Own, at: Ints, pair: NDArray[np.int32], query: Ints, taken: Floats) -> Floats:
    """Features (M, _OWN) of the pairs; `at` are the entries of `had` that belong to `pair`."""
    pairs = len(query)
    count = np.bincount(pair, had.count[at], pairs).astype(np.float32)
    back, minutes, newest = np.full(pairs, _NEVER), np.full(pairs, _NEVER), np.full(len(taken), _NEVER)
    np.minimum.at(back, pair, had.back[at])
    np.minimum.at(minutes, pair, had.minutes[at])
    np.minimum.at(newest, had.query, had.minutes)
    is_own = (count > 0).astype(np.float32)
    events = np.maximum(taken[query], 1)
    return np.stack(
        [
            is_own,
            np.log1p(count),
            is_own * np.log1p(back),
            count / events,
            is_own * (back <= 1),
            is_own * np.log1p(minutes) / 5,
            is_own * (minutes == newest[query]),  # taken in the same sitting as the last one
            np.log1p(events) / 3,
            np.log1p(newest[query]) / 5,
        ],
        axis=1,
    ).astype(np.float32)


@dataclass(frozen=True)
class _Reached:
    """Candidates that the user's last items lead to, one entry for each of these items."""

    key: Ints  # (R,) of the pair of query and candidate
    together: Floats  # (R,) how often
    place: Floats  # (R,) of the user's item, 1 is the newest
    events: Floats  # (R,) of the user's item
    newest_events: Floats  # (B,) of each user's newest item

    @classmethod
    def of(
        cls, queries: Queries, tallies: TopKCounts | None, window: int, counts: Counts, among: Catalogue
    ) -> _Reached:
        nothing = np.zeros(0, dtype=np.float32)
        if tallies is None:
            return cls(np.zeros(0, np.int64), nothing, nothing, nothing, np.ones(len(queries), np.float32))
        rows, mask = counts.users.recent(queries.users, queries.pending)
        rows, mask = rows[:, : -window - 1 : -1], mask[:, : -window - 1 : -1]  # the newest first
        query, place = np.nonzero(mask)
        mine = rows[query, place]
        tally = tallies.of(mine)
        columns = among.columns[np.minimum(tally["other"], len(among.columns) - 1)].ravel()
        found = np.flatnonzero(columns >= 0)
        of_mine = found // tallies.size
        events = counts.items.counts(mine).astype(np.float32) + 1
        newest = counts.items.counts(np.maximum(rows[:, 0], 0)).astype(np.float32) + 1
        return cls(
            query[of_mine] * len(among.candidates) + columns[found],
            tally["count"].ravel()[found],
            (place[of_mine] + 1).astype(np.float32),
            events[of_mine],
            newest,
        )

    def features(self, pair: NDArray[np.int32], query: Ints, events: Floats) -> Floats:
        """Features (M, _REACHED) of the pairs; `events` are those of each pair's candidate."""
        pairs = len(query)

        def add_up(weights: NDArray[np.floating]) -> NDArray[np.float64]:
            return np.bincount(pair, weights, pairs).astype(np.float64)

        nearby = self.together / self.place
        root = 1 / np.sqrt(events + 1)
        from_newest = np.zeros(pairs, dtype=np.float32)
        at_newest = np.flatnonzero(self.place == 1)
        from_newest[pair[at_newest]] = self.together[at_newest]
        newest_events = self.newest_events[query]
        return np.stack(
            [
                _log(add_up(nearby / np.sqrt(self.events)) * root),
                _log(add_up(nearby / self.events)),
                _log(from_newest / newest_events),
                np.log1p(add_up(nearby)),
                add_up(1 / self.place),
                _log(from_newest / np.sqrt(newest_events) * root),
                np.log1p(from_newest),
            ],
            axis=1,
        ).astype(np.float32)


def _minutes(now: Times, minute: NDArray[np.number]) -> Floats:
    """Whole minutes since."""
    minutes: Floats = np.maximum(now // 60 - minute, 0).astype(np.float32)
    return minutes


def _log(similarity: NDArray[np.floating]) -> NDArray[np.floating]:
    logarithm: NDArray[np.floating] = np.log(similarity / _FAINT + 1)
    return logarithm
