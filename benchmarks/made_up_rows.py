"""FELRec-S with the bundled weights and made-up rows: as many users and items as asked, without their events.

Popularity follows Zipf's law over the whole catalogue, in an order that has nothing to do with the rows. Counts are
those of a long log in which nothing changes. Up to a million users and items the tables have their usual sizes; beyond,
rows are shorter, so that ten million fit into memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from felrec.data.synthetic import synthetic_log
from felrec.data.tables.trend_counts import TREND_HALF_LIVES
from felrec.evaluation.protocols import replay
from felrec.model.felrec_s import FELRecS, felrec_s
from felrec.pretrained import load_pretrained

WIDTH = 64  # of vectors
OWN = 20  # items of a user, and neighbours of an item
MANY = 1_000_000  # rows up to which tables have their usual sizes
_SHORT = {"own_items": 24, "near_items": 24, "next_items": 24, "ahead_items": 24}
_USER_TABLES = ("user_", "own_")


class MadeUp:
    """Sizes, popularity, and rows drawn from it."""

    def __init__(self, users: int, items: int) -> None:
        self.users, self.items = users, items
        self.random = np.random.default_rng(0)
        rank = self.random.permutation(items)
        weight = 1 / (rank + 10.0)
        self.popularity = weight / weight.sum()  # (items,)
        self._cumulated = np.cumsum(self.popularity)
        self.moment = 64 * max(1_000, items // 8)  # events so far

    def draw(self, *shape: int) -> NDArray[np.int32]:
        """Items, by popularity."""
        drawn = np.searchsorted(self._cumulated, self.random.random(shape, dtype=np.float32))
        return np.minimum(drawn, self.items - 1).astype(np.int32)

    def model(self) -> FELRecS:
        """The model with these rows; the features of the log are those of a short real one."""
        bundled = load_pretrained().recommender
        assert isinstance(bundled, FELRecS)
        sizes = _SHORT if max(self.users, self.items) > MANY else {}
        model = felrec_s(bundled.settings.model_copy(update=sizes))
        model.load_weights(bundled.weights())
        replay(model, synthetic_log(3_000, n_users=200, n_items=300, seed=0).log.events)
        for signal in model.signals:  # one after another: a table and its copy in memory, not all
            signal.load_state({name: self._rows(name, old) for name, old in signal.state().items()})
        model.version += 1
        return model

    def _rows(self, name: str, old: NDArray[Any]) -> NDArray[Any]:
        if name.startswith(("log_", "rate_")):
            return old
        if name == "trend_events":
            old[:] = 0
            old[0] = self.moment
            return old
        count = self.users if name.startswith(_USER_TABLES) else self.items
        if name in ("user_cache", "item_cache"):
            return np.zeros((count, WIDTH), dtype=old.dtype)  # reads as random unit vectors
        if name.startswith("trend_"):
            return self._trend(name)
        return self._counted(name, np.full((count, *old.shape[1:]), -1, dtype=old.dtype))

    def _trend(self, name: str) -> NDArray[Any]:
        if name == "trend_mass":
            totals = TREND_HALF_LIVES / np.log(2)
            mass: NDArray[Any] = (self.popularity[:, None] * totals).astype(np.float32)
            return mass
        if name == "trend_last":
            return np.full(self.items, self.moment)
        return self.random.integers(1, self.moment, size=self.items)

    def _counted(self, name: str, rows: NDArray[Any]) -> NDArray[Any]:
        """Histories, own items and links."""
        if name == "item_count":
            rows[:] = np.maximum(1, self.popularity * self.moment)
            return rows
        if rows.ndim == 1:  # the number of events of users
            return np.full(len(rows), OWN, dtype=rows.dtype)
        some = rows[:, :OWN]
        if name.endswith("_count"):
            rows[:] = 0
            some[:] = 1
        elif name == "item_ring":
            some[:] = self.random.integers(self.users, size=some.shape)
        elif name.endswith(("_other", "_ring")):
            for first in range(0, len(rows), 1 << 20):
                part = some[first : first + (1 << 20)]
                part[:] = self.draw(*part.shape)
        else:
            some[:] = np.arange(OWN)  # number and minute of a user's event
        return rows
