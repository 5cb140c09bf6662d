"""What became of writes, as a process finds it out if another one did them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from felrec.errors import (
    CapacityReached,
    EngineError,
    FelrecError,
    InvalidRequest,
    KeyConflict,
    NotFound,
    Overloaded,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreLost,
)
from felrec.store.protocol import Answered

_ERRORS: tuple[type[FelrecError], ...] = (
    CapacityReached,
    InvalidRequest,
    KeyConflict,
    NotFound,
    Overloaded,
    StoreDamaged,
    StoreFull,
    StoreLost,
    StoreError,
    EngineError,
)
_BY_NAME = {kind.__name__: kind for kind in _ERRORS}


class Refused(msgspec.Struct, frozen=True):
    """An error as another process can raise it again.

    >>> Refused.of(Overloaded("full", 3.0)).error().retry_after
    3.0
    """

    kind: str
    message: str
    retry_after: float = 0.0

    @classmethod
    def of(cls, error: BaseException) -> Refused:
        """What is sent of an error; of an unexpected one only its text."""
        name = next((kind.__name__ for kind in _ERRORS if isinstance(error, kind)), EngineError.__name__)
        return cls(name, str(error), getattr(error, "retry_after", 0.0))

    def error(self) -> FelrecError:
        """The same error, as far as its kind is known here."""
        kind = _BY_NAME.get(self.kind, EngineError)
        return Overloaded(self.message, self.retry_after) if kind is Overloaded else kind(self.message)


class Outcome(msgspec.Struct, frozen=True):
    """What became of a write."""

    id: str  # of the write
    value: Any = None  # what its answer is made of, see `commands`
    refused: Refused | None = None


@dataclass
class Awaited:
    """A write that a process waits for."""

    id: str  # unique among all processes
    number: int = 0  # of its command in the inbox; 0: it is a write of the process that leads
    answered: bool = False  # whether its outcome is durable

    def done(self, value: Any = None) -> Answered:
        """The entry that belongs into the transaction of the write."""
        return Answered(self.number, _text(Outcome(self.id, msgspec.to_builtins(value))))

    def refused(self, error: BaseException) -> Answered:
        """The entry for a write that had no effect."""
        return Answered(self.number, _text(Outcome(self.id, None, Refused.of(error))))


def read_outcome(text: str) -> Outcome:
    """The inverse of what `Awaited` writes."""
    return msgspec.json.decode(text, type=Outcome)


def _text(outcome: Outcome) -> str:
    return msgspec.json.encode(outcome).decode()
