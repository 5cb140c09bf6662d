"""Keep a second store, with other weights, as new as the one that is in use, until it takes the place of that one."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NoReturn

import msgspec

from felrec.data.events import Events
from felrec.errors import ChangesTrimmed, StoreError
from felrec.fitted import FittedModel
from felrec.service.engine.cluster.change_log import Entry, read_entry
from felrec.service.engine.cluster.following import blocks_of
from felrec.service.engine.engine import Writing
from felrec.service.engine.identity import check_identity
from felrec.service.engine.item_attributes import from_store
from felrec.service.engine.limits import Limits
from felrec.service.engine.moving import CARRIED, FOLLOWS, Followed, followed_by, moved_to, refuse_moved
from felrec.service.engine.serving_state import Block, ServingState
from felrec.service.maintenance.journal import with_new_ids
from felrec.store.protocol import ERASING, LET_GO, Batch, Besides, Contents, Store
from felrec.store.sql_store import SqlStore

_TOGETHER = 64  # blocks in one transaction, while there are many
_ITEMS = 100  # whose attributes are put together
_ERASING = 0.2  # seconds until the old store is loaded again, because a user is being erased
_MOST = 256  # entries of the change log that are read at a time
_AGAIN = "remove it, and start felrec replay --follow again"


def begin_to_follow(new: Store, old: Contents, name: str) -> None:
    """Note in a new store, which was filled from the content of an old one, how much of that it has."""
    filled = new.load()
    let_go = old.notes.get(LET_GO, "")
    note = Followed(name, len(old.blocks) - 1, len(filled.blocks) - 1, old.change, let_go).note()
    new.commit(Batch(len(filled.users), len(filled.items), notes={FOLLOWS: note}))


class KeepingUp:
    """Applies what is new in one store to another one, which no other process has open."""

    def __init__(self, old: SqlStore, new: SqlStore, model: FittedModel) -> None:
        contents = new.load()
        check_identity(new.name, contents.identity, model)
        refuse_moved(new.name, contents.notes)
        followed = followed_by(contents.notes)
        if followed is None or followed.store != old.name:
            raise StoreError(f"{new.name} was not made by felrec replay {old.name} … --follow; give --out another name")
        if followed.complete:
            raise StoreError(f"{new.name} has taken the place of {old.name} already; there is nothing to do")
        if followed.own != len(contents.blocks) - 1:
            raise StoreError(f"{new.name} was served meanwhile and has events of its own; {_AGAIN}")
        self._old, self._new, self._followed = old, new, followed
        self._carried = contents.notes.get(CARRIED)
        self._state = ServingState(model, contents)
        self._writing = Writing.of(new, self._state, Limits(), contents.applied)
        self._committer = self._writing.committer
        self._committer.catch_up(contents)
        if contents.unfinished:
            self._writing.eraser.resume(contents.unfinished)
        self._compare()

    @property
    def behind(self) -> int:
        """Entries of the old change log that are not applied."""
        return self._old.standing().change - self._followed.change

    def step(self, seconds: float) -> bool:
        """Apply what is new, or wait for it for so long; returns False once the new store has everything for good."""
        self._work_in_background()
        try:
            entries = [
                (one.number, read_entry(one.body)) for one in self._old.changes(self._followed.change, seconds, _MOST)
            ]
        except ChangesTrimmed:
            self._compare()
            return True
        for number, entry in entries:
            if number > self._followed.change:  # a comparison may have brought later ones
                self._apply(number, entry)
        if entries:
            self._committer.put_notes(self._notes())
        if moved_to(self._old.notes()) and not self.behind:
            self._complete()
            return False
        return True

    def close(self) -> None:
        """Save the state."""
        self._committer.close()

    def _notes(self) -> dict[str, str]:
        return {FOLLOWS: self._followed.note()}

    def _apply(self, number: int, entry: Entry) -> None:
        batch, state = entry.batch, self._state
        if entry.renumbered:
            self._refuse_renumbered()
        if entry.removal or (batch and batch.blocks and not self._fits(batch)):
            self._compare()
            return
        self._followed = msgspec.structs.replace(self._followed, change=number)
        if batch and batch.blocks:
            blocks = list(blocks_of(batch, len(state.users), len(state.items)))
            self._commit(blocks, self._followed.blocks + len(blocks))
        if batch and batch.attributes:  # in a transaction of its own: a second time does no harm
            self._committer.put_attributes({item: from_store(kept) for item, kept in batch.attributes.items()})

    def _fits(self, batch: Batch) -> bool:
        """Whether the next rows are the same in both; the last rows of the old store may be of erased ids."""
        return (batch.first_user, batch.first_item) == (len(self._state.users), len(self._state.items))

    def _commit(self, blocks: Sequence[Block], there: int) -> None:
        """Apply blocks; `there` is the number of blocks of the old store that the new one has then."""
        self._followed = msgspec.structs.replace(self._followed, blocks=there, own=self._followed.own + len(blocks))
        for _ in self._committer.committed(blocks, notes=self._notes()):
            pass
        self._committer.saver.save_if_due()

    # Comparing

    def _compare(self) -> None:
        """Apply all that only the old store has: after erasures, or if the change log does not reach back."""
        old = self._loaded()
        gone, blocks_there = self._erased(old), old.event_blocks
        for first in range(self._followed.blocks, len(blocks_there), _TOGETHER):
            group = blocks_there[first : first + _TOGETHER]
            blocks = self._blocks(group, old)
            if any(self._has(block) for block in blocks):  # an id that was erased has come back
                self._erase(gone, old)
                gone = []
            if blocks:
                self._commit(blocks, first + len(group))
        self._erase(gone, old)
        different = [item for item in old.attributes if self._differs(item, old)]
        for first in range(0, len(different), _ITEMS):
            piece = different[first : first + _ITEMS]
            self._committer.put_attributes({item: from_store(old.attributes[item]) for item in piece})
        self._followed = msgspec.structs.replace(self._followed, blocks=len(blocks_there), change=old.change)
        self._committer.put_notes(self._notes())

    def _loaded(self) -> Contents:
        """The old store at a moment when nobody is being erased."""
        while (contents := self._old.load()).notes.get(ERASING):
            time.sleep(_ERASING)
        contents.state.clear()
        if contents.notes.get(LET_GO, "") != self._followed.let_go:
            self._refuse_renumbered()
        return contents

    def _refuse_renumbered(self) -> NoReturn:
        raise StoreError(
            f"{self._old.name} has let go of silent users and items since {self._new.name} began; {_AGAIN}"
        )

    def _blocks(self, events: Sequence[Events], old: Contents) -> list[Block]:
        known = len(self._state.users), len(self._state.items)
        return list(with_new_ids(iter(events), old.users, old.items, known))

    def _has(self, block: Block) -> bool:
        users, items = self._state.users, self._state.items
        return any(name and users.row(name) >= 0 for name in block.users) or any(
            name and items.row(name) >= 0 for name in block.items
        )

    def _erased(self, old: Contents) -> list[str]:
        """The users that only the new store has."""
        rows = {row for row, name in enumerate(old.users[: len(self._state.users)]) if name is None}
        return [self._state.users.name(row) for row in sorted(rows.difference(self._state.users.empty.tolist()))]

    def _erase(self, users: Sequence[str], old: Contents) -> None:
        for user in users:
            for _ in self._writing.eraser.erase(user):
                pass
        if users and any(old.items[row] is not None for row in self._state.items.empty.tolist()):
            raise StoreError(f"{self._new.name}: an item was erased here that got new events there; {_AGAIN}")

    def _differs(self, item: str, old: Contents) -> bool:
        here = self._state.attributes
        known = item in here or here.is_deleted(item)
        return not known or (None if here.is_deleted(item) else here.of(item)) != from_store(old.attributes[item])

    # The state, and the end

    def _work_in_background(self) -> None:
        for work in (self._committer.saver, self._committer.rebuilding):
            if time.monotonic() >= work.due:
                work.step()

    def _complete(self) -> None:
        """Take over all that the old store has besides, now that it takes no more writes.

        Receipts come first: with them a command of the inbox that is sent again is known. A kill in between does no
        harm: each command is carried in one transaction with a note of it.
        """
        besides = self._old.besides()
        self._committer.carry_over(Besides({}, besides.answers, besides.notes), self._old.seconds())
        carried = self._carried
        for command in self._old.commands(self._old.standing().inbox):
            if carried is None or command.number > int(carried):
                number = str(command.number)
                self._new.append(command.kind, command.body, {CARRIED: number}, {CARRIED: carried})
                carried = number
        self._committer.saver.save_all()
        self._followed = msgspec.structs.replace(self._followed, complete=True)
        self._committer.put_notes(self._notes())
