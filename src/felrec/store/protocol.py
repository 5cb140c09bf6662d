"""What an engine asks of a store: to give everything back at the start, and to make each change durable as a whole.

A store keeps rows of bytes. It knows no model and no HTTP: tables have names, ids have rows, events have blocks.
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

EMPTY_BASE = "empty"  # the base of a store that began with no events at all


@dataclass(frozen=True)
class Identity:
    """The model that a store belongs to."""

    model: str
    settings: Mapping[str, Any]
    weights: str  # SHA-256
    base: str  # the log and split whose state the store began with, or EMPTY_BASE


class TableSpec(NamedTuple):
    """A table of the state: rows of one type and shape."""

    name: str
    dtype: str  # as numpy spells it, with byte order
    shape: tuple[int, ...]  # of one row


class Answer(NamedTuple):
    """What a submission with an idempotency key was answered."""

    key: bytes  # a digest: keys may name people
    body: bytes  # a digest
    text: str
    expires: float


@dataclass(frozen=True)
class Base:
    """What a store begins with: the ids, pairs and state that a run has after validation."""

    users: Sequence[str]
    items: Sequence[str]
    pairs: PairRecords
    clock: float  # time of the newest event
    tables: Sequence[TableSpec]  # of the state; none for a model whose state is replayed
    state: RowChange


@dataclass(frozen=True)
class Batch:
    """One change, made durable as a whole or not at all."""

    first_user: int = 0  # rows of the new ids begin here
    first_item: int = 0
    users: Sequence[str] = ()
    items: Sequence[str] = ()
    blocks: Sequence[Events] = ()  # with times as they were given
    state: RowChange = field(default_factory=dict)
    applied: int = 0  # how many blocks the state includes after this
    answers: Sequence[Answer] = ()
    attributes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # of items, by id
    notes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Removal:
    """One user's traces, made durable as a whole: what stays of the blocks and base parts they were in."""

    user: int
    items: Rows  # that no other user had: their ids go too
    blocks: Mapping[int, Events]
    parts: Mapping[int, PairRecords]
    state: RowChange


@dataclass
class Contents:
    """Everything a store holds, checked."""

    identity: Identity
    users: list[str | None]  # by row; None was erased
    items: list[str | None]
    pairs: PairRecords  # of the base
    parts: NDArray[np.int64]  # (P + 1,) where the parts of the base begin
    events: Events  # the journal, with times as they were given
    blocks: NDArray[np.int64]  # (B + 1,) where the blocks of the journal begin
    applied: int  # how many blocks the state includes; the others are to be replayed
    clock: float  # of the base
    state: dict[str, NDArray[np.generic]]
    attributes: dict[str, dict[str, Any]]  # of items, by id
    answers: list[Answer]
    notes: dict[str, str]

    @property
    def event_blocks(self) -> list[Events]:
        """The journal, block by block."""
        return [self.events[a:b] for a, b in zip(self.blocks[:-1], self.blocks[1:], strict=True)]


class Store(Protocol):
    """Durable state of one model. Every method but `close` raises a StoreError when it cannot do what it says."""

    @property
    def name(self) -> str:
        """What people call it: its path or address."""
        ...

    @property
    def is_empty(self) -> bool:
        """Whether it has not begun yet."""
        ...

    def begin(self, identity: Identity, base: Base) -> None:
        """Fill an empty store."""
        ...

    def load(self) -> Contents:
        """Everything, with every checksum checked. StoreDamaged if one is wrong."""
        ...

    def answer(self, key: bytes) -> Answer | None:
        """What a submission with this key was answered, unless that has expired. For the thread that commits."""
        ...

    def commit(self, batch: Batch) -> None:
        """Write a batch; when this returns it survives a crash. StoreFull or another StoreError: nothing happened."""
        ...

    def erase(self, removal: Removal) -> bool:
        """Remove a user. False if older pages remain because another process reads them; the next commit retries."""
        ...

    def backup(self, path: Path) -> None:
        """Write a consistent copy to a new file while others go on."""
        ...

    def verify(self) -> list[str]:
        """Check everything; one sentence for each thing that is wrong."""
        ...

    def size(self) -> int:
        """Bytes it takes. Never waits."""
        ...

    def close(self) -> None:
        """Release it for others."""
        ...
