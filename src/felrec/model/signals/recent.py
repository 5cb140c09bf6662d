"""The newest items of each user and the newest users of each item, which most signals use."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from felrec.abilities import ErasureContext
from felrec.data.events import Against, Events, RowChange, Rows, prefixed, without_prefix
from felrec.data.pending import Pending
from felrec.data.tables.histories import EMPTY, Histories, marked, rows_of, steps_in, steps_of
from felrec.data.tables.table import TableState
from felrec.recommender import Queries


@dataclass(frozen=True)
class BlockView:
    """A block of events with values that several signals need, computed once."""

    events: Events  # that do not speak against their items
    against: Against  # what the others speak against
    users: Rows  # distinct, ascending
    items_taken: Pending  # items of each of these users in the block, marked
    items: Rows  # distinct, ascending
    users_there: Pending  # users of each of these items in the block
    history: Rows  # (B, N) the newest items of each event's user just before the event, oldest first
    mask: NDArray[np.bool_]  # (B, N) true where `history` has an item
    taken: NDArray[np.int64]  # (B,) number of earlier events of the event's user
    again: NDArray[np.bool_]  # (B,) whether `history` has the event's item
    worth: NDArray[np.float32]  # (B,) the event's weight, or 0 if `history` has the item with about that weight or more

    def __len__(self) -> int:
        return len(self.events)


class RecentEvents:
    """Histories of both sides. Every FELRec-S has them, regardless of its signals."""

    def __init__(self, length: int) -> None:
        self.length = length
        self.users, self.items = Histories(length), Histories(length)

    def block(self, given: Events) -> BlockView:
        """Prepare a block of events."""
        events = given.shown()
        entries = marked(events.items, events.weights)
        before = Pending.within_block(events.users, entries)
        marked_history = self.users.entries(events.users, before)
        history = rows_of(marked_history)
        same = history == events.items[:, None]
        return BlockView(
            events,
            given.against(),
            *Pending.of_owners(events.users, entries),
            *Pending.of_owners(events.items, events.users),
            history,
            mask=history != EMPTY,
            taken=self.users.counts(events.users) + before.stops - before.starts,
            again=same.any(axis=1),
            worth=_worth(events, np.where(same, steps_in(marked_history), 0)),
        )

    def taken(self, queries: Queries) -> NDArray[np.int64]:
        """Number of events of each query's user (B,), including pending ones."""
        return self.users.counts(queries.users) + queries.pending.stops - queries.pending.starts

    def change(self, block: BlockView) -> RowChange:
        """The histories of all users and items that a block touches."""
        of_users = self.users.change(block.users, block.items_taken)
        of_items = self.items.change(block.items, block.users_there)
        return prefixed("user_", of_users) | prefixed("item_", of_items)

    def apply_change(self, change: RowChange) -> None:
        """Copy the rows of a change."""
        self.users.apply_change(without_prefix("user_", change))
        self.items.apply_change(without_prefix("item_", change))

    def forget(self, user: int, context: ErasureContext) -> RowChange:
        """An empty history of the user; histories of their items without them."""
        nothing = self.users.rewrite(np.array([user], dtype=np.int32), Pending.none(1), np.zeros(1, dtype=np.int64))
        left = self.items.rewrite(context.items, context.newest(self.length), context.left)
        return prefixed("user_", nothing) | prefixed("item_", left)

    def clear(self) -> None:
        """Remove all histories."""
        self.users.clear()
        self.items.clear()

    def view(self) -> TableState:
        """All histories, without a copy."""
        return prefixed("user_", self.users.view()) | prefixed("item_", self.items.view())

    def state(self) -> TableState:
        """A copy of all histories."""
        return prefixed("user_", self.users.state()) | prefixed("item_", self.items.state())

    def load_state(self, state: TableState) -> None:
        """Restore what `state` returned."""
        self.users.load_state(without_prefix("user_", state))
        self.items.load_state(without_prefix("item_", state))


def _worth(events: Events, had: NDArray[np.integer]) -> NDArray[np.float32]:
    """What each event (B,) adds to the trend of its item, of which its user had events with these steps (B, N)."""
    weights = np.ones(len(events), dtype=np.float32)
    if events.weights is not None:
        weights = np.where(np.isnan(events.weights), weights, events.weights)
    return np.where(steps_of(weights) > had.max(axis=1, initial=0), weights, np.float32(0))
