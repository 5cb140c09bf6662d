"""The newest items of each user and the newest users of each item, which most signals use."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from felrec.data.events import Events, RowChange, Rows, prefixed, without_prefix
from felrec.data.pending import Pending
from felrec.data.tables.histories import Histories
from felrec.data.tables.table import TableState
from felrec.recommender import ErasureContext, Queries


@dataclass(frozen=True)
class BlockView:
    """A block of events with values that several signals need, computed once."""

    events: Events
    users: Rows  # distinct, ascending
    items_taken: Pending  # items of each of these users in the block
    items: Rows  # distinct, ascending
    users_there: Pending  # users of each of these items in the block
    history: Rows  # (B, N) the newest items of each event's user just before the event, oldest first
    mask: NDArray[np.bool_]  # (B, N) true where `history` has an item
    taken: NDArray[np.int64]  # (B,) number of earlier events of the event's user
    again: NDArray[np.bool_]  # (B,) whether `history` has the event's item

    def __len__(self) -> int:
        return len(self.events)


class RecentEvents:
    """Histories of both sides. Every FELRec-S has them, regardless of its signals."""

    def __init__(self, length: int) -> None:
        self.length = length
        self.users, self.items = Histories(length), Histories(length)

    def block(self, events: Events) -> BlockView:
        """Prepare a block of events."""
        before = Pending.within_block(events.users, events.items)
        history, mask = self.users.recent(events.users, before)
        return BlockView(
            events,
            *Pending.of_owners(events.users, events.items),
            *Pending.of_owners(events.items, events.users),
            history,
            mask,
            taken=self.users.counts(events.users) + before.stops - before.starts,
            again=(history == events.items[:, None]).any(axis=1),
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
