"""What the service answers, each shape defined once: the engine builds it, HTTP serialises it, the client reads it.

A field that may be missing in the JSON has a default, None or LEFT_OUT, and is left out while it has it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal


class Answer:
    """Base of all answers: the OpenAPI document says that they have no other fields."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}


LEFT_OUT: tuple[Any, ...] = type("LeftOut", (tuple,), {})()  # empty, and not the same object as ()


def about(text: str) -> dict[str, str]:
    """What the OpenAPI document says of a field."""
    return {"description": text}


# Events


@dataclass(frozen=True)
class Rejected(Answer):
    """A row that was refused, counted from 0."""

    row: int
    reason: str


@dataclass(frozen=True)
class Receipt(Answer):
    """What became of a post; all that was accepted is on disk and visible to queries."""

    accepted: int
    late: int = field(metadata=about("accepted, but older than the newest event; taken in order of arrival"))
    rejected: tuple[Rejected, ...]
    events: int = field(metadata=about("events in the store"))
    ignored: dict[str, int] | None = field(
        default=None, metadata=about("in how many accepted events a field with an unknown name was ignored")
    )
    left_out: int | None = field(default=None, metadata=about("events that the service's table of kinds leaves out"))


@dataclass(frozen=True)
class Erasure(Answer):
    """What an erasure removed."""

    events: int
    items_rewritten: int = field(metadata=about("items of the user that others had too, encoded again"))
    items_removed: int = field(metadata=about("items that no other user had"))
    cleaned: bool = field(metadata=about("whether the old pages of the file are gone already"))


# Recommendations, and what is near

ReasonKind = Literal["again", "together", "after", "trending", "popular", "new", "similar"]


@dataclass(frozen=True)
class ReasonItem(Answer):
    """An item of the history that speaks for a recommendation."""

    id: str
    title: str | None
    people: int | None = field(
        default=None, metadata=about("who had both items, among the newest 10,000 events of each")
    )


@dataclass(frozen=True)
class Reason(Answer):
    """What a part of a score is made of. Without it the score would be lower."""

    kind: ReasonKind = field(
        metadata=about(
            "again: the user had it before. together, after: people had it together with, or right or soon after, items"
            " of the user. trending, popular, new: many or first people have it. similar: its vector is near"
        )
    )
    share: float = field(metadata=about("of everything that raises the score, 0 to 1"))
    text: str = field(metadata=about("the reason in English"))
    items: tuple[ReasonItem, ...] = field(metadata=about("items of the user's history, those that count most first"))
    events: int | None = field(
        default=None, metadata=about("of the user with the item; of anybody in the last 24 hours; of anybody at all")
    )
    people: int | None = field(default=None, metadata=about("who have a new item and also an item of the user"))
    last: float | None = field(default=None, metadata=about("when the user had it last, in seconds since 1970"))


@dataclass(frozen=True)
class NearItem(Answer):
    """An item that is near."""

    id: str
    score: float
    title: str | None
    tags: tuple[str, ...]


@dataclass(frozen=True)
class Recommendation(NearItem):
    """An item to show."""

    why: tuple[Reason, ...] = field(default_factory=lambda: LEFT_OUT)
    explored: bool | None = field(
        default=None, metadata=about("true for an item without events, which got this place by lot")
    )


@dataclass(frozen=True)
class BestItems(Answer):
    """The best items, best first."""

    user: str | None = field(default=None, kw_only=True)
    known: bool = field(metadata=about("false for a user without any event"))
    items: tuple[Recommendation, ...]
    ignored: tuple[str, ...] = field(metadata=about("candidates, or items of a session, that no event has named yet"))


@dataclass(frozen=True)
class Recommendations(BestItems):
    """The best items, best first."""

    milliseconds: float
    ticket: str | None = field(
        default=None, metadata=about("names this list in reports of what became of it: POST /v1/feedback")
    )
    arm: Literal["model", "trending"] | None = field(
        default=None, metadata=about("who made the list, if the user is part of a test: the model, or trending items")
    )


@dataclass(frozen=True)
class NearItems(Answer):
    """Items, nearest first."""

    items: tuple[NearItem, ...]

    @property
    def matches(self) -> tuple[NearItem, ...]:
        """The items, by the name that items and users share."""
        return self.items


@dataclass(frozen=True)
class NearUser(Answer):
    """A user that is near."""

    id: str
    score: float


@dataclass(frozen=True)
class NearUsers(Answer):
    """Users, nearest first."""

    users: tuple[NearUser, ...]

    @property
    def matches(self) -> tuple[NearUser, ...]:
        """The users, by the name that items and users share."""
        return self.users


@dataclass(frozen=True)
class Rank(Answer):
    """The place of an item for a user, 0 being best; null if it cannot be ranked."""

    user: str
    rank: int | None


@dataclass(frozen=True)
class Ranks(Answer):
    """The place of an item in the whole catalogue of some users, and by decayed popularity."""

    item: str
    events: int
    catalogue: int
    users: tuple[Rank, ...]
    decayed_popularity: int | None


# Items and users


@dataclass(frozen=True)
class Item(Answer):
    """An item. Without any event it cannot be recommended yet."""

    id: str
    title: str | None
    tags: tuple[str, ...]
    available: bool
    events: int
    available_from: float | None = field(default=None, metadata=about("in seconds since 1970"))
    expires: float | None = field(default=None, metadata=about("in seconds since 1970"))
    variant_of: str | None = field(default=None, metadata=about("of the items of a group, a list has one"))


@dataclass(frozen=True)
class ItemsReceipt(Answer):
    """What became of a post of items; the attributes of all that were accepted are on disk."""

    accepted: int = field(metadata=about("rows; of several rows of one item the last one counts"))
    rejected: tuple[Rejected, ...]
    described_items: int = field(metadata=about("items in the store that have attributes, and deleted ones"))
    ignored: dict[str, int] | None = field(
        default=None, metadata=about("in how many accepted rows a field with an unknown name was ignored")
    )


@dataclass(frozen=True)
class HistoryEntry(Answer):
    """An item that a user had; the time is null where the store never knew it."""

    id: str
    title: str | None
    timestamp: float | None


@dataclass(frozen=True)
class User(Answer):
    """A user and their newest events, newest first."""

    id: str
    events: int
    history: tuple[HistoryEntry, ...]


@dataclass(frozen=True)
class FoundItem(Answer):
    """An item in a list to choose from, or in one for everybody."""

    id: str
    title: str | None
    events: int
    tags: tuple[str, ...] = field(default_factory=lambda: LEFT_OUT)
    value: float | None = field(
        default=None, metadata=about("the decayed count, the count or the place of arrival that a list is sorted by")
    )


@dataclass(frozen=True)
class FoundItems(Answer):
    """Items to choose from, or a list for everybody."""

    items: tuple[FoundItem, ...]
    sort: str | None = field(default=None, metadata=about("what a list for everybody is sorted by"))


@dataclass(frozen=True)
class FoundUser(Answer):
    """A user in a list to choose from."""

    id: str
    events: int


@dataclass(frozen=True)
class FoundUsers(Answer):
    """Users to choose from."""

    users: tuple[FoundUser, ...]


# Refusals


@dataclass(frozen=True)
class Error(Answer):
    """Why a request was refused."""

    code: str
    message: str
    request_id: str


@dataclass(frozen=True)
class Refusal(Answer):
    """The answer to a request that was refused; a post of events also says which rows were."""

    error: Error
    accepted: int | None = None
    rejected: tuple[Rejected, ...] | None = None
