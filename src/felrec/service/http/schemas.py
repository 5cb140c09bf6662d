"""Schemas of request bodies, for validation and for the OpenAPI document."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from felrec.service.engine.limits import Limits
from felrec.service.http.parameters import BodyId, Tag, Text

LIMITS = Limits()


class Shape(BaseModel):
    """Base of all schemas: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


class Event(Shape):
    """A user interacted with an item."""

    user: BodyId
    item: BodyId
    timestamp: Annotated[float, Field(ge=0, lt=1e11)] | datetime | None = Field(
        None, description="seconds since 1970 or ISO 8601; default: now"
    )


class Session(Shape):
    """The items of an anonymous user, oldest first."""

    items: list[BodyId] = Field(max_length=LIMITS.ids)
    k: int = Field(10, ge=1, le=LIMITS.k)
    exclude_seen: bool | None = Field(None, description="default: the run's setting")
    candidates: list[BodyId] | None = Field(None, max_length=LIMITS.ids)
    tags: list[Tag] = Field(default_factory=list, max_length=LIMITS.tags)


class Attributes(Shape):
    """Attributes of an item, for filters and display; the model never uses them."""

    title: Text | None = None
    tags: list[Tag] = Field(default_factory=list, max_length=LIMITS.tags)
    available: bool = Field(True, description="whether it may be recommended")


def body_of(schema: type[Shape]) -> dict[str, Any]:
    """The OpenAPI description of a body that a route reads itself."""
    content = {"schema": {"$ref": f"#/components/schemas/{schema.__name__}"}}
    return {"requestBody": {"required": True, "content": {"application/json": content}}}


BODIES = (Event, Session, Attributes)  # all schemas that routes refer to by name
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
            "application/x-ndjson": {"schema": {"type": "string", "description": "one event per line"}},
        },
    }
}
