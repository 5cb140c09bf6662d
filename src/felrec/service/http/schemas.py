"""Schemas of request bodies, for validation and for the OpenAPI document."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from felrec.data.events import BEGINNING
from felrec.service.engine.limits import Limits
from felrec.service.engine.types import Attributes as Said
from felrec.service.engine.types import Question
from felrec.service.http.parameters import BodyId, Tag, Text

LIMITS = Limits()


class Shape(BaseModel):
    """Base of all schemas: unknown fields are refused, unless one says otherwise."""

    model_config = ConfigDict(extra="forbid")


Moment = Annotated[float, Field(ge=BEGINNING, lt=1e11)] | datetime


def seconds_of(moment: float | datetime | None) -> float | None:
    """Seconds since 1970; a time without a zone is UTC."""
    if not isinstance(moment, datetime):
        return moment
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


class Event(Shape):
    """A user interacted with an item. Fields may also have the usual names of columns, such as user_id and item_id."""

    model_config = ConfigDict(extra="ignore")

    user: BodyId
    item: BodyId
    timestamp: Moment | None = Field(None, description="seconds since 1970 or ISO 8601; default: now")
    kind: str | int | None = Field(
        None, description="such as view or purchase; --kinds of the service says what it means"
    )
    value: float | None = Field(None, description="such as a rating or an amount; --kinds may ask for it")


class Session(Shape):
    """The items of an anonymous user, oldest first."""

    items: list[BodyId] = Field(max_length=LIMITS.ids)
    k: int = Field(10, ge=1, le=LIMITS.k)
    exclude_seen: bool | None = Field(None, description="default: the run's setting")
    candidates: list[BodyId] | None = Field(None, max_length=LIMITS.ids)
    tags: list[Tag] = Field(default_factory=list, max_length=LIMITS.tags)
    all_tags: list[Tag] = Field(default_factory=list, max_length=LIMITS.tags)
    no_tags: list[Tag] = Field(default_factory=list, max_length=LIMITS.tags)
    exclude: list[BodyId] = Field(default_factory=list, max_length=LIMITS.ids)
    per_tag: int | None = Field(None, ge=1, le=LIMITS.k)
    offset: int = Field(0, ge=0, le=LIMITS.k)
    explore: float = Field(0, ge=0, le=1)

    def question(self) -> Question:
        """What the engine is asked."""
        return Question(None, self.items, **{name: value for name, value in self if name != "items"})


class Attributes(Shape):
    """Attributes of an item, for filters and display; the model never uses them."""

    title: Text | None = None
    tags: list[Tag] = Field(default_factory=list, max_length=LIMITS.tags)
    available: bool = Field(True, description="whether it may be recommended")
    available_from: Moment | None = Field(None, description="recommended only from then on")
    expires: Moment | None = Field(None, description="recommended only until then")
    variant_of: BodyId | None = Field(None, description="an item: of it and its variants, a list has one")

    def said(self) -> Said:
        """For the engine."""
        times = {name: seconds_of(getattr(self, name)) for name in ("available_from", "expires")}
        return Said(self.title, tuple(self.tags), self.available, variant_of=self.variant_of, **times)


class ItemRow(Attributes):
    """An item and its attributes. Fields may also have the usual names of columns, such as item_id and name."""

    model_config = ConfigDict(extra="ignore")

    id: BodyId


class Report(Shape):
    """A place of a recommendation list was shown or clicked."""

    ticket: str = Field(max_length=100, description="of the answer that had the list")
    kind: Literal["impression", "click"]
    position: int | None = Field(
        None, ge=0, lt=LIMITS.k, description="in the items of that answer, from 0; null: all were shown"
    )


def body_of(schema: type[Shape]) -> dict[str, Any]:
    """The OpenAPI description of a body that a route reads itself."""
    content = {"schema": {"$ref": f"#/components/schemas/{schema.__name__}"}}
    return {"requestBody": {"required": True, "content": {"application/json": content}}}


BODIES = (Event, Session, Attributes, ItemRow, Report)  # all schemas that routes refer to by name


def rows_body(schema: type[Shape], what: str) -> dict[str, Any]:
    """The OpenAPI description of a body of one row, a list of rows, or one row per line."""
    row = {"$ref": f"#/components/schemas/{schema.__name__}"}
    rows = {"type": "array", "maxItems": LIMITS.submission, "items": row}
    content = {
        "application/json": {"schema": {"anyOf": [row, rows]}},
        "application/x-ndjson": {"schema": {"type": "string", "description": f"one {what} per line"}},
    }
    return {"requestBody": {"required": True, "content": content}}


EVENTS_BODY = rows_body(Event, "event")
ITEMS_BODY = rows_body(ItemRow, "item")
FEEDBACK_BODY = rows_body(Report, "report")
