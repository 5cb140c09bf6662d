"""The shapes of requests and answers, for checking what comes in and for the OpenAPI document.

Answers are built as plain JSON and not checked again on their way out; a test checks them against these shapes.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from felrec.service.engine.limits import Limits
from felrec.service.http.parameters import BodyId, Tag, Text

LIMITS = Limits()


class Shape(BaseModel):
    """Base of all shapes: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


# What comes in


class Event(Shape):
    """Somebody had something to do with an item."""

    user: BodyId
    item: BodyId
    timestamp: Annotated[float, Field(ge=0, lt=1e11)] | datetime | None = Field(
        None, description="seconds since 1970 or ISO 8601; now unless given"
    )


class Session(Shape):
    """Items that someone unknown had, oldest first."""

    items: list[BodyId] = Field(max_length=LIMITS.ids)
    k: int = Field(10, ge=1, le=LIMITS.k)
    exclude_seen: bool | None = Field(None, description="the run's own rule unless given")
    candidates: list[BodyId] | None = Field(None, max_length=LIMITS.ids)
    tags: list[Tag] = Field(default_factory=list, max_length=LIMITS.tags)


class Attributes(Shape):
    """What is said about an item, for filters and display; the model never sees it."""

    title: Text | None = None
    tags: list[Tag] = Field(default_factory=list, max_length=LIMITS.tags)
    available: bool = Field(True, description="whether it may be recommended")


# What goes out


class Rejected(Shape):
    """A row that was refused, counted from 0."""

    row: int
    reason: str


class Receipt(Shape):
    """What became of a post; all that was accepted is on disk."""

    accepted: int
    late: int = Field(description="accepted, but older than the newest event; taken in order of arrival")
    rejected: list[Rejected]
    events: int = Field(description="events in the store")


class Reason(Shape):
    """An item of the history that speaks for a recommendation."""

    id: str
    title: str | None
    weight: float


class Recommended(Shape):
    """An item to show."""

    id: str
    score: float
    title: str | None
    tags: list[str]
    why: list[Reason] | None = None


class Recommendations(Shape):
    """The best items, best first."""

    user: str | None = None
    known: bool = Field(description="false for somebody without any event")
    items: list[Recommended]
    ignored: list[str] = Field(description="candidates, or items of a session, that no event has named yet")
    milliseconds: float


class NearItem(Shape):
    """An item that is near."""

    id: str
    score: float
    title: str | None
    tags: list[str]


class NearUser(Shape):
    """A user that is near."""

    id: str
    score: float


class NearItems(Shape):
    """Items, nearest first."""

    items: list[NearItem]


class NearUsers(Shape):
    """Users, nearest first."""

    users: list[NearUser]


class Rank(Shape):
    """The place of an item for a user, 0 being best; null if it cannot be ranked."""

    user: str
    rank: int | None


class Ranks(Shape):
    """Where an item stands."""

    item: str
    events: int
    catalogue: int
    users: list[Rank]
    decayed_popularity: int | None


class Item(Shape):
    """An item."""

    id: str
    title: str | None
    tags: list[str]
    available: bool
    events: int


class Past(Shape):
    """An item that a user had; the time is null where the store never knew it."""

    id: str
    title: str | None
    timestamp: float | None


class User(Shape):
    """A user and their newest events, newest first."""

    id: str
    events: int
    history: list[Past]


class Erasure(Shape):
    """What went with an erased user."""

    events: int
    items_rewritten: int = Field(description="items of theirs that others had too, encoded anew")
    items_removed: int = Field(description="items that nobody else had")
    cleaned: bool = Field(description="whether the old pages of the file are gone already")


class FoundItem(Shape):
    """An item in a list to choose from."""

    id: str
    title: str | None
    events: int


class FoundItems(Shape):
    """Items to choose from."""

    items: list[FoundItem]


class FoundUser(Shape):
    """A user in a list to choose from."""

    id: str
    events: int


class FoundUsers(Shape):
    """Users to choose from."""

    users: list[FoundUser]


class Alive(Shape):
    """A word."""

    status: str


class Latency(Shape):
    """Of the last requests to a route, in milliseconds."""

    p50: float
    p99: float


class Evenness(Shape):
    """How unevenly recent recommendations fall on the catalogue."""

    requests: int = Field(description="how many recent answers this is about")
    gini: float = Field(description="of how often each item was recommended: 0 even, 1 all on one")
    coverage: float = Field(description="share of the catalogue that was recommended at all")
    deciles: list[float] = Field(description="share of the recommendations by decile of items, most popular first")


class Stats(Shape):
    """The numbers of the service."""

    ready: bool
    durable: bool = Field(description="whether the last write reached the disk")
    problem: str | None = Field(description="what the last failed write said, until one goes well")
    model: str
    events: int
    users: int
    items: int
    cold_items: int = Field(description="with fewer than 5 events")
    queue_depth: int = Field(description="events that wait")
    queue_limit: int
    last_commit_ms: float
    last_batch_ms: float
    clock: float = Field(description="time of the newest event")
    store_bytes: int
    uptime_seconds: float
    events_per_second: float = Field(description="over the last ten seconds")
    latencies: dict[str, Latency] = Field(description="by the last word of a route")
    memory_bytes: int
    bias: Evenness


class Error(Shape):
    """Why a request was refused."""

    code: str
    message: str
    request_id: str


class Refusal(Shape):
    """The answer to a request that was refused; a post of events also says which rows were."""

    error: Error
    accepted: int | None = None
    rejected: list[Rejected] | None = None


EVENTS_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "anyOf": [
                        {"$ref": "#/components/schemas/Event"},
                        {
                            "type": "array",
                            "maxItems": LIMITS.submission,
                            "items": {"$ref": "#/components/schemas/Event"},
                        },
                    ]
                }
            },
            "application/x-ndjson": {"schema": {"type": "string", "description": "one event a line"}},
        },
    }
}
