"""What goes into the engine, and the few results that only programs see. What it answers is in `felrec.answers`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from felrec.answers.types import EngineStats

Side = Literal["user", "item"]


class IdempotencyKey(NamedTuple):
    """The name a client gave a submission, and what it sent: the same name with another body is a conflict."""

    name: str
    body: bytes


class Attributes(NamedTuple):
    """What the platform says of an item: for filters and display, never for the model."""

    title: str | None = None
    tags: tuple[str, ...] = ()
    available: bool = True


@dataclass(frozen=True)
class Question:
    """A request for recommendations: for which user, how many items, out of which."""

    user: str | None = None  # None: an anonymous user, who had the items of a session
    session: Sequence[str] = ()  # oldest first
    k: int = 10
    exclude_seen: bool | None = None  # None: as the run has it
    candidates: Sequence[str] | None = None  # None: the whole catalogue
    tags: Sequence[str] = ()  # keeps items that have at least one of them


@dataclass(frozen=True)
class Vectors:
    """Vectors of some users or items, for maps."""

    side: Side
    ids: tuple[str, ...]
    values: NDArray[np.float32] = field(repr=False)  # (n, D), unit length


@dataclass(frozen=True)
class Health(EngineStats):
    """The numbers of the engine, and those that only metrics and tests look at."""

    journal: int  # of the events, those that came since the store began
    commits: int
    started: float  # time of the start
