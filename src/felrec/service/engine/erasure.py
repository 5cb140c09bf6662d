"""Erase a user in pieces, so that posts do not wait for the erasure of a user with many events.

The first piece removes the id, the history and the vector: from then on the user is unknown, and new events with the
same id are those of a new user. Then follow the user's items, and last the user's events in the journal. The store
has a note of an unfinished erasure, so that a start can finish it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from felrec.abilities import ErasureContext, Forgetting
from felrec.answers.types import Erasure
from felrec.data.events import RowChange
from felrec.service.engine.serving_state import ServingState
from felrec.store.protocol import ERASING, Removal, Unfinished
from felrec.store.unfinished import erasing_note

_ITEMS, _TAKEN = 128, 4_096  # most items in a piece, and most of their events that go, unless it is one item
_BLOCKS, _EVENTS = 512, 16_384  # blocks in a piece, and about how many events they hold
_PARTS = 1  # parts of the base in a piece


@dataclass(frozen=True)
class Piece:
    """A change on disk, and the same change in memory, which must follow it."""

    removal: Removal
    apply: Callable[[], None]


class UserErasure:
    """The erasure of one user, as far as it is done. A piece that could not be written is planned again."""

    def __init__(self, state: ServingState, left: Unfinished, *, visible: bool) -> None:
        """`visible` is whether the user still has their id."""
        self._state, self._visible, self._user = state, visible, left.user
        self._order = left.items
        items, which = np.unique(left.items, return_inverse=True)
        self._taken = np.bincount(which, left.events, minlength=len(items)).astype(np.int64)
        self._items = items.astype(np.int32)
        self._next = int(np.searchsorted(items, left.rewritten))  # the first item that is not done
        self._blocks, self._parts = list(left.blocks), list(left.parts)
        self.erasure = Erasure(int(left.events.sum()), 0, 0, cleaned=True)

    def plan(self) -> Piece | None:
        """The next piece; None if only the note of the erasure is left. Reads only."""
        if self._visible:
            return self._of_user()
        if self._next < len(self._items):
            return self._of_items(self._next_items())
        if self._blocks or self._parts:
            return self._of_journal()
        return None

    def _of_user(self) -> Piece:
        nothing = self._context(slice(0, 0))
        change = self._forgotten(nothing)

        def apply() -> None:
            self._state.forget_user(self._user)
            self._visible = False

        notes = {ERASING: erasing_note(self._user, 0)}
        return Piece(Removal(users=[self._user], state=change, notes=notes), partial(self._apply, change, apply))

    def _next_items(self) -> slice:
        taken = np.cumsum(self._taken[self._next : self._next + _ITEMS])
        return slice(self._next, self._next + max(1, int((taken <= _TAKEN).sum())))

    def _of_items(self, window: slice) -> Piece:
        context = self._context(window)
        change = self._forgotten(context)
        gone = context.items[context.left == 0].tolist()
        names = [self._state.items.name(row) for row in gone]
        note = erasing_note(self._user, int(context.items[-1]) + 1)

        def apply() -> None:
            self._state.forget_items(gone)
            self._next += len(context.items)
            done, left = self.erasure, len(context.items) - len(gone)
            self.erasure = replace(
                done, items_rewritten=done.items_rewritten + left, items_removed=done.items_removed + len(gone)
            )

        removal = Removal(items=gone, attributes=names, state=change, notes={ERASING: note}, clean=False)
        return Piece(removal, partial(self._apply, change, apply))

    def _of_journal(self) -> Piece:
        index, blocks, events = self._state.index, {}, 0
        for number in self._blocks[:_BLOCKS]:
            blocks[number] = index.block(number)
            events += len(blocks[number])
            if events >= _EVENTS:
                break
        parts = {} if blocks else {number: index.part(number) for number in self._parts[:_PARTS]}

        def apply() -> None:
            del self._blocks[: len(blocks)], self._parts[: len(parts)]

        return Piece(Removal(blocks=blocks, parts=parts, clean=False), apply)

    def _context(self, window: slice) -> ErasureContext:
        items, index = self._items[window], self._state.index
        newest = partial(index.newest_users, items)
        return ErasureContext(items, self._taken[window], index.item_events[items], self._order, newest)

    def _forgotten(self, context: ErasureContext) -> RowChange:
        model = self._state.recommender
        return model.forget(self._user, context) if isinstance(model, Forgetting) else {}

    def _apply(self, change: RowChange, apply: Callable[[], None]) -> None:
        with self._state.lock.write():
            if change and self._state.servable:
                self._state.servable.apply_change(change)
            apply()
