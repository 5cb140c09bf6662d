"""The profile of a log: do its users return, repeat, follow others, and which horizon predicts what they take.

A handful of running means, so that the same weights can behave differently on a news site and in a shop.
"""

from __future__ import annotations

import math

import numpy as np

from felrec.abilities import ErasureContext
from felrec.data.events import RowChange, all_rows
from felrec.data.tables.table import TableState
from felrec.data.tables.trend_counts import TREND_HALF_LIVES
from felrec.model.signals.recent import BlockView, RecentEvents
from felrec.model.signals.repetition import Repetition
from felrec.model.signals.signal import Floats
from felrec.model.signals.together import Together
from felrec.model.signals.trend import Trend

_TABLE = "log_domain"
_HALF_LIFE = 5_000  # of the running means, in events
_LEAST = 1e-3  # of an event: the decayed count that an item without events is assumed to have
_SHARPNESS = 2.0  # of the trust in the best horizon
_MEANS = ("repeats", "known_item", "returns", "log_taken", "follows", "log_catalogue")


class LogProfile:
    """Features of the log: running means over events, and the half-life that predicts best.

    What the networks read moves on with the moments of `TrendCounts`; the means run on with every event.
    """

    names = (*(f"profile.{name}" for name in _MEANS), "profile.log_best_half_life")

    def __init__(
        self, recent: RecentEvents, trend: Trend, repetition: Repetition | None, together: Together | None
    ) -> None:
        self._recent, self._trend, self._repetition, self._together = recent, trend, repetition, together
        self.clear()

    def clear(self) -> None:
        """Forget all events."""
        self.means = np.zeros((2, len(_MEANS) + len(TREND_HALF_LIVES)), dtype=np.float32)  # running, and shown

    @property
    def features(self) -> Floats:
        """The features (F,) of the log."""
        best = TREND_HALF_LIVES[self._likelihood.argmax()]
        return np.append(self.means[1, : len(_MEANS)], np.log(best) / 10).astype(np.float32)

    @property
    def horizon_weights(self) -> Floats:
        """How far to trust each half-life of the trend, in all 1."""
        sharp = _SHARPNESS * self._likelihood
        weights = np.exp(sharp - sharp.max())
        trusted: Floats = (weights / weights.sum()).astype(np.float32)
        return trusted

    @property
    def _likelihood(self) -> Floats:
        return self.means[1, len(_MEANS) :]

    def change(self, block: BlockView) -> RowChange:
        """The means after a block, over its events that count; at a new moment, also what is shown of them."""
        counts, counted, means = self._trend.counts, block.events.counts, self.means[0]
        if counted.any():
            share = counts.shares(counts.decayed(block.events.items) + np.float32(_LEAST))
            facts = np.concatenate([self._event_facts(block), np.log(np.minimum(share, 1))], axis=1)
            step = 1 - 0.5 ** (counted.sum() / _HALF_LIFE) if counts.events else 1.0
            means = means + np.float32(step) * (facts[counted].mean(axis=0) - means)
        rows = np.arange(2 if counts.moment_after(len(block)) > counts.moment else 1, dtype=np.int32)
        return {_TABLE: (rows, np.stack([means] * len(rows)).astype(np.float32))}

    def _event_facts(self, block: BlockView) -> Floats:
        """What each event (B, means) says about the log."""
        events, history = block.events, block.history
        repeats = block.again
        if self._repetition:  # it remembers more than a history
            repeats = repeats | self._repetition.had(events.users, events.items)
        returns = block.taken > 0
        follows = np.zeros(len(block), dtype=bool)
        if self._together:
            follows = self._together.linked(np.maximum(history[:, -1], 0), events.items) & returns
        known = self._recent.items.counts(events.items) > 0
        catalogue = np.full(len(block), math.log1p(self._trend.counts.items) / 10)
        facts = [repeats, known, returns, np.log1p(block.taken) / 3, follows, catalogue]
        return np.stack(facts, axis=1).astype(np.float32)

    def apply_change(self, change: RowChange) -> None:
        """Copy the means of a change."""
        rows, means = change[_TABLE]
        self.means[rows] = means

    def forget(self, user: int, context: ErasureContext) -> RowChange:
        """Unchanged: means over all events say nothing about one user."""
        return all_rows(self.state())

    def view(self) -> TableState:
        """The means, without a copy."""
        return {_TABLE: self.means}

    def state(self) -> TableState:
        """A copy of the running means and of those that are shown."""
        return {_TABLE: self.means.copy()}

    def load_state(self, state: TableState) -> None:
        """Restore what `state` returned."""
        self.means = np.array(state[_TABLE], dtype=np.float32)
