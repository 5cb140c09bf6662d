"""All that FELRec-S counts, by row: histories, tallies, horizons, and what the log is like."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from felrec.config import FELRecSSettings
from felrec.data.events import Events, RowChange, Rows
from felrec.data.pending import Pending
from felrec.data.tables.histories import Histories
from felrec.data.tables.top_k_counts import TopKCounts
from felrec.model.domain import Domain
from felrec.model.horizons import Floats, Horizons
from felrec.model.rates import Cells, Rates
from felrec.recommender import ErasureContext

NEAR_WINDOW = 10  # newest items of a user that count together with the next one, and that lead to others
_OWN_FADE, _NEAR_FADE = 0.99, 0.9995  # of a tally, with each meeting of its owner


class Counts:
    """Tables of rows that events change and queries read; one that is None is left out."""

    def __init__(self, settings: FELRecSSettings) -> None:
        self.users, self.items = Histories(settings.history_length), Histories(settings.history_length)
        self.horizons, self.domain = Horizons(), Domain()
        self.rates = Rates() if settings.rates else None
        self.own = TopKCounts(settings.own_items, _OWN_FADE, marks=("nth", "minute")) if settings.own_items else None
        self.near = TopKCounts(settings.near_items, _NEAR_FADE) if settings.near_items else None  # soon before or after
        self.next = TopKCounts(settings.next_items, _NEAR_FADE) if settings.next_items else None  # right after

    def change(self, block: Events) -> RowChange:
        """Everything as it will be once the block is taken in."""
        before = Pending.within_block(block.users, block.items)
        rows, mask = self.users.recent(block.users, before)
        taken = self.users.counts(block.users) + before.stops - before.starts
        told = self._told(block, rows, mask, taken)
        near, following = _meetings(rows, mask, block.items)
        change = _named("user_", self.users.change(*Pending.of_owners(block.users, block.items)))
        change |= _named("item_", self.items.change(*Pending.of_owners(block.items, block.users)))
        change |= _named("trend_", self.horizons.change(block.items))
        change |= _named("log_", self.domain.change(told, self.horizons.counts(block.items), self.horizons))
        if self.own:
            minute = (block.times // 60).astype(np.int32)
            of_users = self.own.change(block.users, block.items, nth=taken.astype(np.int32), minute=minute)
            change |= _named("own_", of_users)
        if self.near:
            change |= _named("near_", self.near.change(*near, also=block.items))
        if self.next:
            change |= _named("next_", self.next.change(*following, also=block.items))
        return change

    def change_rates(self, found: Cells, taken: NDArray[np.bool_], events: int) -> RowChange:
        """The rates as they will be, by what `evidence.come_true` found."""
        assert self.rates
        return _named("rate_", self.rates.change(found, taken, events))

    def forget(self, user: int, remains: ErasureContext) -> RowChange:
        """Nothing in place of the user; of their items, what is left without them. Means and rates of the log stay."""
        users, items = np.array([user], dtype=np.int32), remains.items
        nothing = self.users.rewrite(users, Pending.none(1), np.zeros(1, dtype=np.int64))
        newest = remains.newest(self.items.length)
        change = _named("user_", nothing)
        change |= _named("item_", self.items.rewrite(items, newest, remains.left))
        change |= _named("trend_", self.horizons.forget(items, remains.taken, remains.left))
        change |= _unchanged("log_", self.domain)
        if self.rates:
            change |= _unchanged("rate_", self.rates)
        if self.own:
            change |= _named("own_", self.own.blank(users))
        window = Histories(min(NEAR_WINDOW, self.users.length))
        of_one = np.zeros(len(remains.order), dtype=np.int32)
        alone = window.recent(of_one, Pending.within_block(of_one, remains.order))
        for prefix, tallies, meetings in zip(
            ("near_", "next_"), (self.near, self.next), _meetings(*alone, remains.order), strict=True
        ):
            if tallies:
                change |= _named(prefix, tallies.without(items, *meetings))
        return change

    def apply_change(self, change: RowChange) -> None:
        """Write what `change` or `forget` returned."""
        for prefix, table in self._tables():
            table.apply_change(
                {key.removeprefix(prefix): rows for key, rows in change.items() if key.startswith(prefix)}
            )

    def clear(self) -> None:
        """Forget everything."""
        for _, table in self._tables():
            table.clear()

    def state(self) -> dict[str, NDArray[np.generic]]:
        """A copy of all tables, by name."""
        return {prefix + name: values for prefix, table in self._tables() for name, values in table.state().items()}

    def load_state(self, state: dict[str, NDArray[np.generic]]) -> None:
        """Put back what `state` returned."""
        for prefix, table in self._tables():
            table.load_state({key.removeprefix(prefix): state[key] for key in state if key.startswith(prefix)})

    def _tables(self) -> Iterator[tuple[str, Histories | TopKCounts | Horizons | Domain | Rates]]:
        """The tables, and how their names begin."""
        yield "user_", self.users
        yield "item_", self.items
        yield "trend_", self.horizons
        yield "log_", self.domain
        if self.rates:
            yield "rate_", self.rates
        if self.own:
            yield "own_", self.own
        if self.near:
            yield "near_", self.near
        if self.next:
            yield "next_", self.next

    def _told(self, block: Events, rows: Rows, mask: NDArray[np.bool_], taken: NDArray[np.int64]) -> Floats:
        """What each event says of the log, as `Domain` takes it."""
        again = ((rows == block.items[:, None]) & mask).any(axis=1)
        if self.own:  # it remembers more
            again |= (self.own.of(block.users)["other"] == block.items[:, None]).any(axis=1)
        known = self.items.counts(block.items) > 0
        returns = taken > 0
        follows = np.zeros(len(block), dtype=bool)
        if self.near:
            follows = (self.near.of(np.maximum(rows[:, -1], 0))["other"] == block.items[:, None]).any(axis=1) & returns
        catalogue = np.full(len(block), math.log1p(self.horizons.items) / 10)
        told = [again, known, returns, np.log1p(taken) / 3, follows, catalogue]
        return np.stack(told, axis=1).astype(np.float32)


_Meetings = tuple[NDArray[np.integer], NDArray[np.integer]]  # of items with others, in time order


def _meetings(rows: Rows, mask: NDArray[np.bool_], items: Rows) -> tuple[_Meetings, _Meetings]:
    """Which items met near each other, both ways, and which came right after which, by what users had before."""
    event, place = np.nonzero(mask[:, -NEAR_WINDOW:])
    earlier, later = rows[:, -NEAR_WINDOW:][event, place], items[event]
    other = earlier != later  # a pair of an item with itself has one direction
    near = np.concatenate([earlier, later[other]]), np.concatenate([later, earlier[other]])
    again = np.flatnonzero(mask[:, -1])
    return near, (rows[again, -1], items[again])


def _unchanged(prefix: str, table: Domain | Rates) -> RowChange:
    return {prefix + name: (np.arange(len(all_), dtype=np.int32), all_) for name, all_ in table.state().items()}


def _named(prefix: str, change: RowChange) -> RowChange:
    return {prefix + name: rows for name, rows in change.items()}
