"""Trend: how popular an item is, over short and long horizons."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from felrec.abilities import ErasureContext
from felrec.data.events import RowChange, Rows, prefixed
from felrec.data.tables.trend_counts import TREND_HALF_LIVES, TrendCounts
from felrec.model.signals.recent import BlockView, RecentEvents
from felrec.model.signals.signal import Floats, OneTable

if TYPE_CHECKING:
    from felrec.model.signals.profile import LogProfile

_TABLE = "trend_"
_BACKGROUND = 1e-6  # share of all events that an item without any is assumed to have
_NEW_DOUBLINGS = 4  # an item with 16 events is not new any more
_NEW_AGE = 20_000  # nor is one whose first event is not among the newest 20,000,
_NEW_PART = 5  # or not among the newest fifth, while the log is short
_FRESH, _WAITED = 200, 4_000  # ages at which the lift of an item begins, and is full


class Trend(OneTable):
    """Features per item: log count, log decayed counts, the share at the trusted horizon, and the age."""

    def __init__(self, recent: RecentEvents) -> None:
        self.counts = TrendCounts()
        super().__init__(self.counts, _TABLE)
        self.profile: LogProfile | None = None  # knows which horizon predicts best on this log
        self._recent = recent

    @property
    def names(self) -> tuple[str, ...]:
        """Everything that more is better of, then the age."""
        decayed = (f"trend.log_decayed_{half_life:.0f}" for half_life in TREND_HALF_LIVES)
        trusted = ("trend.trusted_share",) if self.profile else ()
        return ("trend.log_count", *decayed, *trusted, "trend.log_age")

    def item_features(self, items: Rows) -> Floats:
        """Features (C, F) of items."""
        decayed = self.counts.decayed(items)
        columns: list[NDArray[np.floating]] = [_log1p(self._recent.items.counts(items))[:, None], _log1p(10 * decayed)]
        if self.profile:
            trusted = (self.counts.shares(decayed) * self.profile.horizon_weights).sum(axis=1)
            columns.append(np.log(trusted / _BACKGROUND + 1).astype(np.float32)[:, None] / 2)
        columns.append(_log1p(self.counts.ages(items))[:, None] / 5)
        return np.concatenate(columns, axis=1).astype(np.float32)

    def newness(self, items: Rows) -> Floats:
        """How new items (B,) are: 1 with one event, less with each doubling, 0 with many or if they are old."""
        young = self.counts.ages(items) <= min(_NEW_AGE, self.counts.events // _NEW_PART)
        return (self._fewness(items) * young).astype(np.float32)

    def lifted(self, items: Rows) -> Floats:
        """Which part of the lift of a new item items (B,) have: less with each doubling of events, less when fresh.

        A fresh item ranks high as it is, and one event of one user must not push it. Unlike `newness` it fades: an
        item that is three times as old as a new one has none.
        """
        ages = np.maximum(self.counts.ages(items), 1)
        fading = np.clip(1.5 - ages / (2 * (self.counts.events // _NEW_PART + 1)), 0, 1)
        waiting = np.clip(np.log(ages / _FRESH) / np.log(_WAITED / _FRESH), 0, 1)
        part: Floats = (self._fewness(items) * fading * waiting).astype(np.float32)
        return part

    def _fewness(self, items: Rows) -> NDArray[np.float64]:
        """1 with one event, less with each doubling, 0 with many."""
        doublings = np.log2(np.maximum(self._recent.items.counts(items), 1))
        return np.maximum(1 - doublings / _NEW_DOUBLINGS, 0)

    def change(self, block: BlockView) -> RowChange:
        """The counts of the items that a block touches.

        An event adds its weight, unless its user lately had one with the item that counted as much.
        """
        return prefixed(_TABLE, self.counts.change(block.events.items, block.worth, block.against))

    def touched(self, change: RowChange) -> Rows:
        """The items whose features a change has changed, if it made no new moment."""
        return change[f"{_TABLE}mass"][0]

    def forget(self, user: int, context: ErasureContext) -> RowChange:
        """The counts of the user's items, smaller by the share of their events that go."""
        return prefixed(_TABLE, self.counts.forget(context.items, context.taken, context.left))


def _log1p(values: NDArray[np.number]) -> Floats:
    """ln(1 + x) in single precision; numpy's takes seven times as long."""
    logarithm: Floats = torch.log1p(torch.from_numpy(values)).float().numpy()
    return logarithm
