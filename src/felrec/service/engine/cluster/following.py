"""Follows the writer: loads a store once, then applies every entry of its change log in memory."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from felrec.abilities import Forgetting
from felrec.data.events import RowChange
from felrec.errors import ChangesTrimmed, StoreError
from felrec.fitted import FittedModel
from felrec.service.engine.changed_rows import ChangedRows
from felrec.service.engine.click_counts import FEEDBACK, Note
from felrec.service.engine.cluster.change_log import read_entry
from felrec.service.engine.feedback import Feedback
from felrec.service.engine.identity import check_identity
from felrec.service.engine.item_attributes import from_store
from felrec.service.engine.moving import moved_to
from felrec.service.engine.rebuilding import REBUILD, WRITING
from felrec.service.engine.serving_state import Block, ServingState
from felrec.service.engine.state_saver import StateSaver
from felrec.store.protocol import ERASING, Batch, Change, Contents, Removal, SharedStore, Standing

_log = logging.getLogger(__name__)


class UnsavedRows:
    """At least the rows of the state that differ from those on disk: a process that begins to lead must save them.

    Two sets: the older one is dropped once the writer has saved everything up to the beginning of the newer one.
    """

    def __init__(self, saved: int) -> None:
        """`saved` is the number of blocks that the rows on disk include."""
        self._older, self._newer, self._since = ChangedRows(), ChangedRows(), saved

    def add(self, change: RowChange) -> None:
        """Called with each change."""
        self._newer.add(change)

    def add_all(self, rows: ChangedRows) -> None:
        """Add the rows of a term of this process."""
        self._newer.add_all(rows)

    def were_saved(self, saved: int, blocks: int) -> None:
        """Called with the number of blocks that the rows on disk include now, and that those in memory do."""
        if saved >= self._since:
            self._older, self._newer, self._since = self._newer, ChangedRows(), blocks

    def rows(self) -> ChangedRows:
        """All of them."""
        rows = self._older.copy()
        rows.add_all(self._newer)
        return rows


class Follower:
    """Only one thread at a time uses it; readers of its state hold the lock of that."""

    def __init__(self, store: SharedStore, model: FittedModel, now: Callable[[], float]) -> None:
        self._store, self._now = store, now
        contents = self._loaded()
        check_identity(store.name, contents.identity, model)
        self.state = ServingState(model, contents, now)
        self.unsaved = self._catch_up(self.state, contents)
        self.position = contents.change  # the newest entry that was read
        self._included = contents.change  # the newest entry that the state included when it was loaded
        self._same_blocks = contents.change  # an entry since which the numbers of blocks are those of the state
        self.last_erasure = contents.change  # the newest entry that may be of an erasure, or let users go
        self.notes = contents.notes
        self.feedback = Feedback(self.notes.get(FEEDBACK, ""), now)
        self.moved = moved_to(contents.notes)  # which store has taken the place of this one

    def load_again(self) -> Contents:
        """Load everything anew, while the state in memory goes on answering, and then replace it.

        The entries from `position` on still have to be read: they tell what became of writes of this process.
        """
        _log.info("%s: loading everything again", self._store.name)
        contents = self._loaded()
        model = replace(self.state.model, recommender=self.state.initial_model())
        state = ServingState(model, contents, self._now)
        unsaved = self._catch_up(state, contents)
        self.state.become(state)
        self.unsaved, self._included, self._same_blocks = unsaved, contents.change, contents.change
        self.feedback.follow(Note.read(contents.notes.get(FEEDBACK, "")))
        self.moved = moved_to(contents.notes)
        return contents

    def go_on(self, position: int, last_erasure: int, saver: StateSaver) -> None:
        """Follow again after a term of this process."""
        self.position, self.last_erasure, self._same_blocks = position, last_erasure, last_erasure
        self.unsaved = UnsavedRows(saver.saved)
        self.unsaved.add_all(saver.unsaved_rows())

    def read_from(self, position: int) -> None:
        """Read the entries after this one too: those that the state includes tell only what became of writes."""
        self.position = position

    def succeed(self, before: Follower) -> None:
        """Have what is in use of a follower of another store become what was loaded from this one."""
        before.state.become(self.state)
        before.feedback.follow(Note.read(self.notes.get(FEEDBACK, "")))
        self.state, self.feedback = before.state, before.feedback

    def were_saved(self, standing: Standing) -> None:
        """Called with what the store had saved at some moment: before users were let go it had other blocks."""
        if standing.change >= self._same_blocks:
            self.unsaved.were_saved(standing.applied, self.state.index.blocks)

    def skip(self) -> None:
        """Go on after what was loaded, because the entries before are gone."""
        self.position = self._included

    def apply(self, change: Change) -> Sequence[str]:
        """Apply the next entry; returns the outcomes of writes that it has."""
        if change.number != self.position + 1:
            raise ChangesTrimmed(f"{self._store.name}: entry {self.position + 1} of the change log is missing")
        entry, applies = read_entry(change.body), change.number > self._included
        if applies and entry.batch:
            self._apply_batch(entry.batch)
        elif applies and entry.removal:
            self._apply_removal(entry.removal)
        elif applies:
            self.load_again()
        self.position = change.number
        if entry.renumbered:
            self.last_erasure = change.number
        what = entry.batch or entry.removal
        return [answered.text for answered in what.answered] if what else ()

    def _apply_batch(self, batch: Batch) -> None:
        state = self.state
        if batch.blocks and (batch.first_user, batch.first_item) != (len(state.users), len(state.items)):
            raise ChangesTrimmed(f"{self._store.name}: memory does not match the change log")
        self.moved = moved_to(batch.notes)
        for block in blocks_of(batch, len(state.users), len(state.items)):
            change = state.change(block)
            if change is not None:
                self.unsaved.add(change)
            state.apply_change(block, change)
        if batch.attributes:
            with state.lock.write():
                for item, kept in batch.attributes.items():
                    state.attributes.put(item, state.items.row(item), from_store(kept))
        if FEEDBACK in batch.notes:
            self.feedback.follow(Note.read(batch.notes[FEEDBACK]))

    def _apply_removal(self, removal: Removal) -> None:
        state, self.last_erasure = self.state, self.position + 1
        with state.lock.write():
            if removal.state and state.servable:
                state.servable.apply_change(removal.state)
            for user in removal.users:
                state.forget_user(user)
            state.forget_items(removal.items)
        if removal.notes.get(ERASING) == "" and not isinstance(state.recommender, Forgetting):
            self.load_again()  # the writer's model applied the remaining journal from the start

    def _loaded(self) -> Contents:
        contents = self._store.load()
        if contents.notes.get(REBUILD) == WRITING:
            raise StoreError(
                f"{self._store.name} must be opened once by a felrec serve alone: an erasure is unfinished"
            )
        return contents

    def _catch_up(self, state: ServingState, contents: Contents) -> UnsavedRows:
        unsaved = UnsavedRows(contents.applied)
        state.catch_up(contents.event_blocks[contents.applied :], contents.applied, unsaved.add)
        return unsaved


def blocks_of(batch: Batch, users: int, items: int) -> Iterator[Block]:
    """The blocks of a batch, each with the new ids that it is the first to have."""
    new_users, new_items = list(batch.users), list(batch.items)
    for number, events in enumerate(batch.blocks, start=1):
        last = number == len(batch.blocks)
        user_count = len(new_users) if last else max(0, int(events.users.max(initial=-1)) + 1 - users)
        item_count = len(new_items) if last else max(0, int(events.items.max(initial=-1)) + 1 - items)
        yield Block(events, new_users[:user_count], new_items[:item_count])
        del new_users[:user_count], new_items[:item_count]
        users, items = users + user_count, items + item_count
