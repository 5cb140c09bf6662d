"""Items that the same users took: what the signals `together` and `follows` share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from felrec.abilities import ErasureContext, Linked
from felrec.data.events import RowChange, Rows, prefixed
from felrec.data.pending import Pending
from felrec.data.tables.top_k_counts import TopKCounts
from felrec.model.signals.pairs import Candidates, Pairs
from felrec.model.signals.recent import BlockView, RecentEvents
from felrec.model.signals.signal import Floats, Ints, OneTable, one_row
from felrec.recommender import Queries

WINDOW = 10  # newest items of a user that an event is linked with
_FADE = 0.9995  # of a count, with each link of its item
_SHRINKAGE = 10.0  # makes items with few events less similar to others, as in item-kNN
_FAINT = 1e-3  # similarities below this look the same
_STRENGTHS = 12  # buckets of how strong a link is
_PER_UNIT = 1.6  # such buckets for each unit of a log similarity
_NO_ITEM = -2  # neither an item nor padding
MEASURES = (
    "log_cosine",  # over the recent items of the user, each discounted by its place
    "log_confidence",
    "log_confidence_of_newest",  # from the newest item of the user alone
    "log_count",
    "places",
    "log_cosine_of_newest",
    "log_count_of_newest",
)

Links = tuple[NDArray[np.integer], NDArray[np.integer]]  # items, and the items they are linked to


class ItemLinks(OneTable, ABC):
    """Of each item, the items most often linked to it. A subclass says which links count and where to read them."""

    names: ClassVar[tuple[str, ...]]
    table: ClassVar[str]  # how the names of its tables begin
    reach: ClassVar[int]  # newest items of a user whose links are followed
    strength: ClassVar[str]  # the measure by which pairs are put into buckets
    bucket_count = 2 * _STRENGTHS

    def __init__(self, size: int, recent: RecentEvents) -> None:
        self.counts, self._recent = TopKCounts(size, _FADE), recent
        super().__init__(self.counts, self.table)

    @staticmethod
    @abstractmethod
    def links(history: Rows, mask: NDArray[np.bool_], items: Rows) -> Links:
        """The links of events of `items` (B,) with those of their users' items (B, N) in `mask`, in time order."""

    def find(self, queries: Queries, candidates: Candidates) -> LinkedPairs:
        """Follow the links of each user's newest items."""
        recent, backwards = self._recent, slice(None, -self.reach - 1, -1)
        history, mask = recent.users.recent(queries.users, queries.pending)
        history, mask = history[:, backwards], mask[:, backwards]  # the newest first
        query, place = np.nonzero(mask)
        mine = history[query, place]
        linked = self.counts.of(mine)
        columns = candidates.columns(linked["other"]).ravel()
        found = np.flatnonzero(columns >= 0)
        of_mine = found // self.counts.size
        return LinkedPairs(
            keys=query[of_mine] * len(candidates) + columns[found],
            count=linked["count"].ravel()[found],
            place=(place[of_mine] + 1).astype(np.float32),
            events=_events(recent, mine)[of_mine],
            newest_events=_events(recent, np.maximum(history[:, 0], 0)),
            strength=MEASURES.index(self.strength),
        )

    def leading_to(self, user: int, item: int) -> list[tuple[int, float]]:
        """The newest items of a user that are linked to an item, and how often; those that count most first."""
        history, mask = self._recent.users.recent(one_row(user), Pending.none(1))
        mine = history[0, mask[0]][: -self.reach - 1 : -1]  # the newest first
        rows = self.counts.of(mine)
        place, slot = np.nonzero(rows["other"] == item)
        count = rows["count"][place, slot]
        order = np.argsort(-count / (place + 1) / np.sqrt(_events(self._recent, mine)[place]), kind="stable")
        leads = {int(mine[place[at]]): float(count[at]) for at in order[::-1]}  # of a repeated item its best place
        return list(reversed(leads.items()))

    def similarities(self, items: Rows) -> tuple[Rows, Floats]:
        """The items (B, K) that each item is linked to, and how similar they are: 0 for free slots and itself."""
        rows, events = self.counts.of(items), self._recent.items.counts
        others = rows["other"]
        linked = (others >= 0) & (others != items[:, None])
        of_others = events(np.where(linked, others, 0).ravel()).reshape(others.shape)
        similarity = rows["count"] / (np.sqrt(events(items)[:, None] * of_others) + _SHRINKAGE)
        return others, np.where(linked, similarity, 0).astype(np.float32)

    def similar(self, item: int) -> Linked:
        """The items that an item is linked to: by how often, for the numbers of their events."""
        others, similarity = (of_all[0] for of_all in self.similarities(one_row(item)))
        kept = np.flatnonzero(similarity > 0)
        order = kept[np.argsort(-similarity[kept], kind="stable")]
        return Linked(others[order], similarity[order])

    def linked(self, items: Rows, others: Rows) -> NDArray[np.bool_]:
        """Whether each item (B,) is linked to another one (B,)."""
        linked: NDArray[np.bool_] = (self.counts.of(items)["other"] == others[:, None]).any(axis=1)
        return linked

    def change(self, block: BlockView) -> RowChange:
        """The links of the items that a block touches; an item gets a row with its first event, even without links."""
        items = block.events.items
        links = self.links(block.history, linking(block.history, block.mask, items), items)
        new = items[self._recent.items.counts(items) == 0]
        return prefixed(self.table, self.counts.change(*links, also=new))

    def forget(self, user: int, context: ErasureContext) -> RowChange:
        """The links of the items without those that the user made."""
        history, mask, items = _windows(context, self._recent.length)
        met, others = self.links(history, linking(history, mask, items), items)
        mine = np.isin(met, context.items)
        return prefixed(self.table, self.counts.without(context.items, met[mine], others[mine]))


def _windows(context: ErasureContext, length: int) -> tuple[Rows, NDArray[np.bool_], Rows]:
    """Of events that link one of the items: the user's history (B, N), the mask of it, and the event's item (B,)."""
    order = np.concatenate([np.full(length, -1, dtype=np.int32), context.order])
    among = np.append(0, np.cumsum(np.isin(order, context.items)))  # how many of the items come before each place
    linking = among[length + 1 :] > among[max(0, length - WINDOW) : len(context.order) + max(0, length - WINDOW)]
    windows: Rows = sliding_window_view(order, length + 1)[linking]
    return windows[:, :-1], windows[:, :-1] >= 0, windows[:, -1]


@dataclass(frozen=True)
class LinkedPairs:
    """Candidates that the user's newest items are linked to, one entry for each such item."""

    keys: Ints  # (R,)
    count: Floats  # (R,) of the link
    place: Floats  # (R,) of the user's item, 1 is the newest
    events: Floats  # (R,) of the user's item
    newest_events: Floats  # (B,) of each user's newest item
    strength: int  # which of `MEASURES`
    own_items = False

    def features(self, pairs: Pairs) -> Floats:
        """Features (M, F) by `MEASURES`."""
        pair = pairs.numbers(self.keys)

        def summed(weights: NDArray[np.floating]) -> NDArray[np.float64]:
            return np.bincount(pair, weights, len(pairs)).astype(np.float64)

        discounted = self.count / self.place
        root = 1 / np.sqrt(pairs.events + 1)
        from_newest = np.zeros(len(pairs), dtype=np.float32)
        at_newest = np.flatnonzero(self.place == 1)
        from_newest[pair[at_newest]] = self.count[at_newest]
        newest_events = self.newest_events[pairs.query]
        return np.stack(
            [
                _log(summed(discounted / np.sqrt(self.events)) * root),
                _log(summed(discounted / self.events)),
                _log(from_newest / newest_events),
                np.log1p(summed(discounted)),
                summed(1 / self.place),
                _log(from_newest / np.sqrt(newest_events) * root),
                np.log1p(from_newest),
            ],
            axis=1,
        ).astype(np.float32)

    def buckets(self, pairs: Pairs, features: Floats) -> Ints:
        """By the strength of the link, and whether it leads to an item that the user had."""
        strength = features[:, self.strength]
        step = np.clip(strength * _PER_UNIT, 0, _STRENGTHS - 1).astype(np.int64)
        return np.where(strength > 0, step * 2 + pairs.own, -1)


def linking(history: Rows, mask: NDArray[np.bool_], items: Rows) -> NDArray[np.bool_]:
    """The entries (B, N) of histories that events of `items` (B,) are linked with: not those they met there already.

    So a user who takes two items in turns links them once. An item is always linked with itself, which pushes nothing.
    """
    same = history == items[:, None]
    linking = mask.copy()
    again = np.flatnonzero(same.any(axis=1))
    met = np.where(_near(same[again]), history[again], _NO_ITEM)  # (A, N) what was taken close to the same item
    known = (history[again][:, :, None] == met[:, None, :]).any(axis=2)
    linking[again] &= same[again] | ~known
    return linking


def _near(marked: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Places (A, N) at most `WINDOW` places away from a marked one."""
    summed = np.pad(np.cumsum(marked, axis=1), ((0, 0), (WINDOW + 1, WINDOW)), mode="edge")
    summed[:, : WINDOW + 1] = 0
    near: NDArray[np.bool_] = summed[:, 2 * WINDOW + 1 :] > summed[:, : marked.shape[1]]
    return near


def _events(recent: RecentEvents, items: Rows) -> Floats:
    return recent.items.counts(items).astype(np.float32) + 1


def _log(similarity: NDArray[np.floating]) -> NDArray[np.floating]:
    logarithm: NDArray[np.floating] = np.log(similarity / _FAINT + 1)
    return logarithm
