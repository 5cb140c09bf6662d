"""The interface of a store: it loads everything at the start and makes each change durable atomically.

A store keeps rows of bytes and knows nothing of models or HTTP: tables have names, ids have rows, events have blocks.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from felrec.data.events import Events, RowChange, Rows
from felrec.data.seen import PairRecords
from felrec.data.tables.trimmed_values import TrimmedChange
from felrec.errors import StoreError

EMPTY_BASE = "empty"  # the base of a store that started without events
ERASING = "erasing"  # the note of an erasure that is not finished: its user, and the item rows below which it is

LET_GO = "let_go"  # the note of how often users and items were let go: rows mean others after each time
MOVED = "moved"  # the note of a store that another one has taken the place of: it takes no more commands


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

    users: Sequence[str | None]  # None: a row of an erased id, in a copy
    items: Sequence[str | None]
    pairs: PairRecords
    clock: float  # time of the newest event
    tables: Sequence[TableSpec]  # of the state; empty for a model whose state is replayed
    state: RowChange
    notes: Mapping[str, str] = field(default_factory=dict)


class Command(NamedTuple):
    """A write that any process appended, and that the writer has not answered yet."""

    number: int  # unique; not in the order in which commands became durable
    kind: str
    body: bytes


class Answered(NamedTuple):
    """What became of a command: it leaves the inbox in the transaction that makes its effect durable."""

    number: int
    text: str  # a receipt, or why it was refused


class Change(NamedTuple):
    """An entry of the change log, from which every process learns what the writer made durable."""

    number: int  # 1, 2, 3 …, given by the writer, without gaps
    body: bytes


class Standing(NamedTuple):
    """Where the log of a store is, as one look at it sees them together."""

    change: int  # the newest entry of the change log; 0: none yet
    horizon: int  # the oldest entry that is still there; readers that are further behind load everything again
    applied: int  # see Contents
    leader: str  # the name of the process that writes, if its lease has not ended
    token: int  # of the newest lease, ended or not: what was tried with an older one is durable by now or never will be
    inbox: int  # commands that the writer has not answered yet


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
    answered: Sequence[Answered] = ()
    change: bytes | None = None  # for the change log; None: nobody follows, or there is nothing to learn


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
    answered: Sequence[Answered] = ()
    change: bytes | None = None  # as in a batch


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
    change: int = 0  # the newest entry of the change log that the content includes
    inbox: list[Command] = field(default_factory=list)  # durable, and no part of the rest yet

    @property
    def event_blocks(self) -> list[Events]:
        """The journal, block by block."""
        return [self.events[a:b] for a, b in zip(self.blocks[:-1], self.blocks[1:], strict=True)]


class Besides(NamedTuple):
    """What a store has besides ids, events and the state."""

    attributes: dict[str, dict[str, Any]]
    answers: list[StoredReceipt]
    notes: dict[str, str]


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

    def save(
        self,
        rows: TrimmedChange,
        applied: int | None = None,
        notes: Mapping[str, str] | None = None,
        change: bytes | None = None,
    ) -> None:
        """Write a part of the rows of the state that have changed. It need not be durable when this returns.

        The parts count once one gives `applied`, the number of blocks of the journal that the state then includes; its
        notes and its entry of the change log are written with it. Parts of a save that never got so far are ignored.
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


class SharedStore(Store, Protocol):
    """A store that several processes have open: all append and follow, and the one that has the lease writes.

    Without the lease `begin`, `commit`, `save`, `tidy` and `erase` raise NotLeader and change nothing, whatever the
    process believed when it called them: the token of the lease is compared within the transaction.
    """

    @property
    def place(self) -> str:
        """The path or address with which it was opened: it may have a password, unlike the name."""
        ...

    def append(
        self,
        kind: str,
        body: bytes,
        notes: Mapping[str, str] | None = None,
        expected: Mapping[str, str | None] | None = None,
    ) -> int:
        """Put a command into the inbox and return its number; it is durable then, and so are the notes.

        NotesChanged, and nothing is written, unless these notes have the expected values until then; None: there is no
        such note. Each of them must be among `notes`. So of two processes that compute a note from one value one wins.

        Any thread of any process. A writer that commits at the same time delays it, and never makes it fail.
        """
        ...

    def notes(self) -> dict[str, str]:
        """All notes as they are now: where a stream was left, for example. Any thread."""
        ...

    def drop_notes(self, names: Sequence[str]) -> None:
        """Remove notes that only a process that does not lead cares for. Any thread of any process."""
        ...

    def commands(self, most: int, skip: Collection[int] = (), seconds: float = 0.0) -> list[Command]:
        """The oldest commands of the inbox, without those the caller already works on. Only for the writer.

        Waits up to so many seconds for the first. Only one thread may wait for commands or changes.
        """
        ...

    def changes(self, after: int, seconds: float, most: int = 256) -> list[Change]:
        """The entries of the change log after this one, in order; waits up to so many seconds for the first.

        ChangesTrimmed if the next one is not there any more. Only one thread may wait for commands or changes.
        """
        ...

    def standing(self) -> Standing:
        """Where the log is now. Any thread."""
        ...

    def lead(self, name: str, seconds: float) -> bool:
        """Take the lease, or renew it, for so many seconds by the store's clock. Returns whether this process has it.

        Taking it gives the lease a new token and reads again what the process before may have changed. Any thread, but
        nothing may be written meanwhile.
        """
        ...

    def resign(self) -> None:
        """End the lease, if this process has it, so that another one need not wait for its end."""
        ...

    def trim(self, keep: int) -> None:
        """Drop entries of the change log but for the newest so many. Only for the writer, in any thread."""
        ...


class Replaceable(Store, Protocol):
    """A store whose events and state can be replaced by others while engines have it open. Only the writer may."""

    @property
    def alone(self) -> bool:
        """Whether no other process can have it open."""
        ...

    def besides(self) -> Besides:
        """What a new content has to take over."""
        ...

    def beside(self) -> Replaceable:
        """An empty store to fill. One that was not finished before is removed."""
        ...

    def discard(self) -> None:
        """Close a store that `beside` made and remove it."""
        ...

    def become(self, other: Replaceable, change: bytes | None = None) -> None:
        """Take over the content of a store that `beside` made, in one step: a kill leaves one or the other.

        If other processes share it, `change` is the entry of the change log from which they learn it. StoreBusy, and
        nothing has changed, if one of them loads the store at this moment.
        """
        ...
