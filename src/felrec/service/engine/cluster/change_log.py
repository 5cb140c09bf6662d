"""Entries of the change log, and the store as the process that leads sees it: every write tells the others of it.

What is replicated is the journal, not the rows that it changes: each process computes those itself, with the same
kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar, cast

import msgspec

from felrec.data.tables.trimmed_values import TrimmedChange
from felrec.errors import NotLeader, StoreUnreachable
from felrec.service.engine.cluster.encoding import decode, encode
from felrec.service.engine.moving import Moved, moved_to
from felrec.service.engine.rebuilding import REBUILD
from felrec.store.protocol import Batch, Removal, Replaceable, SharedStore, Store

T = TypeVar("T")
_OVER = "this process does not lead any more"


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One entry: a batch, a piece of an erasure, or the news that the state was replaced by another one."""

    batch: Batch | None = None
    removal: Removal | None = None
    renumbered: bool = False  # users and items were let go: rows mean others from now on

    @property
    def replaced(self) -> bool:
        """Whether everything has to be loaded again: the state does not follow from the one before."""
        return self.batch is None and self.removal is None


def read_entry(body: bytes) -> Entry:
    """Decode an entry."""
    return decode(body, Entry)


class TermStore:
    """A shared store during one term of its writer, from taking the lease to losing it; fulfils `Store`.

    After a write whose outcome is unknown, memory may be behind the store. So nothing more is written in this term,
    even if the lease still holds: the process has to follow the change log first.
    """

    def __init__(self, store: SharedStore, position: int, last_erasure: int) -> None:
        self._shared = store
        self.position = position  # the newest entry of the change log
        self.over = False
        self.moved: Moved | None = None  # which store has taken the place of this one
        self.last_erasure = last_erasure  # the entry of the newest piece of an erasure; those before have its ids

    def __getattr__(self, name: str) -> Any:
        """Everything that does not write is the shared store's."""
        return getattr(self._shared, name)

    def as_store(self) -> Store:
        """The same, typed."""
        return cast(Store, self)

    def commit(self, batch: Batch) -> None:
        """Write a batch durably; followers need no receipts of idempotency keys."""
        change = encode(Entry(batch=replace(batch, answers=())))
        self._write(lambda: self._shared.commit(replace(batch, change=change)), entry=True)
        if moved := moved_to(batch.notes):
            self.moved, self.over = moved, True

    def erase(self, removal: Removal) -> bool:
        """Write a piece of an erasure; followers have emptied the blocks themselves when the user went."""
        change = encode(Entry(removal=replace(removal, blocks={}, parts={})))
        cleaned = self._write(lambda: self._shared.erase(replace(removal, change=change)), entry=True)
        self.last_erasure = self.position
        return cleaned

    def become(self, other: Replaceable) -> None:
        """Let go of users and items; the entries before have their ids."""
        change = encode(Entry(renumbered=True))
        self._write(lambda: cast(Replaceable, self._shared).become(other, change), entry=True)
        self.last_erasure = self.position

    def save(self, rows: TrimmedChange, applied: int | None = None, notes: Mapping[str, str] | None = None) -> None:
        """Write rows of the state; the last of a rebuilt one tells the others to load it."""
        change = encode(Entry()) if applied is not None and notes and REBUILD in notes else None
        self._write(lambda: self._shared.save(rows, applied, notes, change), entry=change is not None)

    def tidy(self, everything: bool = False) -> bool:
        """Do a piece of the store's own work."""
        return self._write(lambda: self._shared.tidy(everything), entry=False)

    def _write(self, write: Callable[[], T], *, entry: bool) -> T:
        if self.over:
            raise NotLeader(_OVER)
        try:
            done = write()
        except (NotLeader, StoreUnreachable):
            self.over = True
            raise
        self.position += entry
        return done
