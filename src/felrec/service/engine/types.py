"""Inputs of the engine, and results that are only used internally. Its public answers are in `felrec.answers`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from felrec.answers.statistics import EngineStats

Side = Literal["user", "item"]


class IdempotencyKey(NamedTuple):
    """A client's name for a submission, and its body: the same name with another body is a conflict."""

    name: str
    body: bytes
    digest: bytes | None = None  # of a body that is not at hand


class Attributes(NamedTuple):
    """Attributes of an item given by the platform, for filters and display; the model never uses them."""

    title: str | None = None
    tags: tuple[str, ...] = ()
    available: bool = True
    available_from: float | None = None  # in seconds since 1970; None: always
    expires: float | None = None
    variant_of: str | None = None  # of the items of a group, one is listed

    def may_be_shown(self, now: float) -> bool:
        """Whether the item may be recommended at a time."""
        begun = self.available_from is None or now >= self.available_from
        return self.available and begun and (self.expires is None or now < self.expires)


@dataclass(frozen=True)
class Question:
    """A request for recommendations: the user, the number of items, and which items may be listed."""

    user: str | None = None  # None: an anonymous user with the items of a session
    session: Sequence[str] = ()  # oldest first
    k: int = 10
    exclude_seen: bool | None = None  # None: the run's setting
    candidates: Sequence[str] | None = None  # None: the whole catalogue
    tags: Sequence[str] = ()  # only items with at least one of these tags
    all_tags: Sequence[str] = ()  # only items with all of these
    no_tags: Sequence[str] = ()  # only items with none of these
    exclude: Sequence[str] = ()  # items to leave out
    per_tag: int | None = None  # most items with the same tag
    offset: int = 0  # items to skip: a later page
    explore: float = 0.0  # share of the places given to items without events


@dataclass(frozen=True)
class Vectors:
    """Vectors of some users or items, for maps."""

    side: Side
    ids: tuple[str, ...]
    values: NDArray[np.float32] = field(repr=False)  # (n, D), unit length


@dataclass(frozen=True)
class Health(EngineStats):
    """Statistics of the engine, including those used only by metrics and tests."""

    journal: int  # events since the store was created
    commits: int
    unsaved_blocks: int  # blocks that a start would have to apply again
    answers: int  # recommendations since the start
    items_scored: int  # items that were scored for them
    pruned: bool  # whether answers need not score all items
    started: float  # start time
    unready: str | None  # why it is not ready: what to do, without names of files
