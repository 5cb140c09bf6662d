"""What goes into the engine and what comes out of it: plain records with external ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Side = Literal["user", "item"]


class NewEvent(NamedTuple):
    """An event whose ids and time were checked; a timestamp of None is now."""

    user: str
    item: str
    timestamp: float | None = None  # seconds since 1970


class IdempotencyKey(NamedTuple):
    """The name a client gave a submission, and what it sent: the same name with another body is a conflict."""

    name: str
    body: bytes


@dataclass(frozen=True)
class Rejected:
    """A row of a submission that was not taken, and why."""

    row: int  # from 0, in the order of the submission
    reason: str


@dataclass(frozen=True)
class Receipt:
    """What became of a submission. It exists only once its events are on disk and visible to queries."""

    accepted: int
    late: int  # of the accepted: older than the newest event known when they came
    rejected: tuple[Rejected, ...]
    events: int  # in the store, now


class Attributes(NamedTuple):
    """What the platform says of an item: for filters and display, never for the model."""

    title: str | None = None
    tags: tuple[str, ...] = ()
    available: bool = True


class Reason(NamedTuple):
    """An item of the history, and how much it weighs for a recommended one."""

    id: str
    title: str | None
    weight: float


class ScoredItem(NamedTuple):
    """An item and how well it matches."""

    id: str
    score: float
    title: str | None
    tags: tuple[str, ...]


class ScoredUser(NamedTuple):
    """A user and how well they match."""

    id: str
    score: float


@dataclass(frozen=True)
class Question:
    """Who wants how many items recommended, out of which."""

    user: str | None = None  # None: somebody without a name, who had the items of a session
    session: Sequence[str] = ()  # oldest first
    k: int = 10
    exclude_seen: bool | None = None  # None: as the run has it
    candidates: Sequence[str] | None = None  # None: the whole catalogue
    tags: Sequence[str] = ()  # keeps items that have at least one of them


@dataclass(frozen=True)
class Recommendations:
    """The best items for somebody."""

    items: tuple[ScoredItem, ...]
    known: bool  # whether the user (or any item of the session) had an event before
    ignored: tuple[str, ...] = ()  # candidates, or items of a session, that have no event


class PastEvent(NamedTuple):
    """An event of a user's history. The time is None where the store began with the event and never knew it."""

    item: str
    title: str | None
    time: float | None


@dataclass(frozen=True)
class UserInfo:
    """A user: how many events, and the newest of them, newest first."""

    id: str
    events: int
    history: tuple[PastEvent, ...]


@dataclass(frozen=True)
class ItemInfo:
    """An item: its attributes and how many events it had. Without any it cannot be recommended yet."""

    id: str
    title: str | None
    tags: tuple[str, ...]
    available: bool
    events: int


class Named(NamedTuple):
    """A user or an item in a list to choose from."""

    id: str
    title: str | None  # of items
    events: int


@dataclass(frozen=True)
class Erasure:
    """What went with an erased user."""

    events: int
    items_rewritten: int  # items of theirs that others have too, encoded anew
    items_removed: int  # items that nobody else had
    cleaned: bool = True  # False: somebody reads the file, so that older pages are overwritten with the next write


@dataclass(frozen=True)
class Vectors:
    """Vectors of some users or items, for maps."""

    side: Side
    ids: tuple[str, ...]
    values: NDArray[np.float32] = field(repr=False)  # (n, D), unit length


class RankOf(NamedTuple):
    """The place of an item in a user's whole catalogue; 0 is best, None if it cannot be ranked."""

    user: str
    rank: int | None


@dataclass(frozen=True)
class ItemRanks:
    """Where an item stands for some users, and by decayed popularity, which is the same for everyone."""

    item: str
    events: int
    catalogue: int  # items that are ranked
    users: tuple[RankOf, ...]
    popularity: int | None  # rank by decayed popularity


@dataclass(frozen=True)
class Bias:
    """How unevenly recent recommendations fall on the catalogue."""

    requests: int  # how many recent answers this is about
    gini: float  # of the number of times each item was recommended: 0 even, 1 all on one
    coverage: float  # share of the catalogue that was recommended at all
    deciles: tuple[float, ...]  # share of recommendations by decile of item events, most popular first


@dataclass(frozen=True)
class Health:
    """The numbers of the engine."""

    ready: bool  # answers queries and takes events
    durable: bool  # the last write reached the disk
    problem: str | None  # what the last failed write said, until one goes well
    model: str
    events: int  # in the store, those of its base included
    journal: int  # of them, those that came since the store began
    users: int
    items: int
    cold_items: int  # with fewer than 5 events
    queue: int  # events that wait
    queue_limit: int
    clock: float  # time of the newest event
    commit_milliseconds: float  # of the last commit
    commits: int
    applied_milliseconds: float  # of the last micro-batch: from taking it until it was visible
    store_bytes: int
    started: float  # time of the start
