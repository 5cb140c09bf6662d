"""The interface of a store: it loads everything at the start and makes each change durable atomically.

A store keeps rows of bytes and knows nothing of models or HTTP: tables have names, ids have rows, events have blocks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from felrec.data.events import Events, RowChange, Rows
from felrec.data.seen import PairRecords
from felrec.errors import StoreError

EMPTY_BASE = "empty"  # the base of a store that started without events
ERASING = "erasing"  # the note of an erasure that is not finished: its user, and the item rows below which it is


@dataclass(frozen=True)
class Identity:
    """The model that a store belongs to."""

    model: str
    settings: Mapping[str, Any]
    weights: str  # SHA-256
    base: str  # the log and split whose state the store started with, or EMPTY_BASE


class TableSpec(NamedTuple):
    """A table of the state: rows of one type and shape."""

    name: str
    dtype: str  # numpy's name, with byte order
    shape: tuple[int, ...]  # of one row


class StoredReceipt(NamedTuple):
    """The stored answer to a submission with an idempotency key."""

    key: bytes  # a digest, because keys may contain personal data
    body: bytes  # a digest
    text: str
    expires: float  # by the clock `Store.seconds`


@dataclass(frozen=True)
class Base:
    """The initial content of a store: the ids, pairs and state of a run after validation."""

    users: Sequence[str]
    items: Sequence[str]
    pairs: PairRecords
    clock: float  # time of the newest event
    tables: Sequence[TableSpec]  # of the state; empty for a model whose state is replayed
    state: RowChange


@dataclass(frozen=True)
class Batch:
    """One atomic change of everything except the state, which follows from the journal."""

    first_user: int = 0  # the first row of the new ids
    first_item: int = 0
    users: Sequence[str | None] = ()  # None: a row of an erased id, in a replay
    items: Sequence[str | None] = ()
    blocks: Sequence[Events] = ()  # with times as given by the client
    answers: Sequence[StoredReceipt] = ()
    attributes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # of items, by id
    notes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Removal:
    """One atomic piece of an erasure: ids that go, and the new content of blocks, base parts and rows of the state."""

    users: Sequence[int] = ()  # rows whose ids are erased
    items: Sequence[int] = ()
    attributes: Sequence[str] = ()  # ids of items whose attributes are deleted
    blocks: Mapping[int, Events] = field(default_factory=dict)
    parts: Mapping[int, PairRecords] = field(default_factory=dict)
    state: RowChange = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    clean: bool = True  # whether to remove old pages after it; between the first and the last piece it need not be


@dataclass(frozen=True)
class Unfinished:
    """An erasure that is not finished: the id is gone, and what is still in the file must follow."""

    user: int
    items: Rows  # (E,) of the user's events, or pairs of the base, that are still in the file, oldest first
    events: NDArray[np.int64]  # (E,) number of events of each: one, except for pairs of the base
    blocks: Sequence[int]  # blocks that hold them
    parts: Sequence[int]  # parts of the base that hold them
    rewritten: int = 0  # the rows of the state of items below this one are done


@dataclass
class Contents:
    """The whole content of a store, with checksums verified."""

    identity: Identity
    users: list[str | None]  # by row; None: erased
    items: list[str | None]
    pairs: PairRecords  # of the base
    parts: NDArray[np.int64]  # (P + 1,) boundaries of the parts of the base
    events: Events  # the journal, with times as given by the client
    blocks: NDArray[np.int64]  # (B + 1,) boundaries of the blocks of the journal
    applied: int  # number of blocks that the state includes; the rest must be replayed
    clock: float  # of the base
    seconds: float  # see Store.seconds
    state: dict[str, NDArray[np.generic]]
    attributes: dict[str, dict[str, Any]]  # of items, by id
    answers: list[StoredReceipt]
    notes: dict[str, str]
    unfinished: Unfinished | None = None  # the events of its user are in no other entry

    @property
    def event_blocks(self) -> list[Events]:
        """The journal, block by block."""
        return [self.events[a:b] for a, b in zip(self.blocks[:-1], self.blocks[1:], strict=True)]


class Store(Protocol):
    """Durable state of one model. Every method except `close` raises StoreError on failure."""

    @property
    def name(self) -> str:
        """The path or address, for messages."""
        ...

    @property
    def is_empty(self) -> bool:
        """Whether `begin` was not called yet."""
        ...

    def begin(self, identity: Identity, base: Base) -> None:
        """Fill an empty store."""
        ...

    def load(self) -> Contents:
        """Read everything and verify every checksum; raises StoreDamaged if one is wrong."""
        ...

    def answer(self, key: bytes) -> StoredReceipt | None:
        """The stored answer to a submission with this key, unless expired. Only for the thread that commits."""
        ...

    def seconds(self) -> float:
        """For how long the store has been open in its life: a clock that goes on after a restart and never jumps."""
        ...

    def commit(self, batch: Batch) -> None:
        """Write a batch durably. After StoreFull or another StoreError nothing was changed."""
        ...

    def save(self, rows: RowChange, applied: int | None = None, notes: Mapping[str, str] | None = None) -> None:
        """Write a part of the rows of the state that have changed. It need not be durable when this returns.

        The parts count once one gives `applied`, the number of blocks of the journal that the state then includes; its
        notes are written with it. Parts of a save that never got so far are ignored.
        """
        ...

    @property
    def writing(self) -> bool:
        """Whether the disk is still busy with what was saved last: another `save` or `tidy` would wait for it."""
        ...

    def tidy(self, everything: bool = False) -> bool:
        """Do a short piece of the store's own work on what was saved. Returns whether more of it is worth doing.

        An erasure needs `everything` to be done, and does the rest itself, however long that takes.
        """
        ...

    def erase(self, removal: Removal) -> bool:
        """Write a piece of an erasure. Returns False if old pages remain because a process reads them.

        The next write retries. After StoreFull or another StoreError nothing was changed.
        """
        ...

    def backup(self, path: Path) -> None:
        """Write a consistent copy to a new file while the store is in use."""
        ...

    def verify(self) -> list[str]:
        """Check everything; return one sentence per problem."""
        ...

    def trouble(self) -> StoreError | None:
        """Why the store cannot be written at the moment, if it is known; StoreLost for good. Never waits."""
        ...

    def size(self) -> int:
        """Size in bytes. Never waits."""
        ...

    def close(self) -> None:
        """Close the store and release it to other processes."""
        ...
