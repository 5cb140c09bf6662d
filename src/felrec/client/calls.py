"""The requests that the service understands and how to read the answers. Nothing here talks to a network."""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from numbers import Real
from typing import Any, Generic, TypeVar
from urllib.parse import quote

from felrec.client import answers
from felrec.client.answers import Erasure, Item, Matches, Receipt, Recommendations, User
from felrec.errors import DataError

A = TypeVar("A")
Id = str | int
Event = tuple[Id, Id] | tuple[Id, Id, float | datetime | str]
"""User, item, and the time: seconds since 1970, a datetime with a time zone or ISO 8601; now, if it is left out."""


@dataclass(frozen=True)
class Call(Generic[A]):
    """One request, and what makes its answer a record."""

    method: str
    path: str
    read: Callable[[Any], A]
    query: dict[str, Any] = field(default_factory=dict)
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    gone: Callable[[], A] | None = None  # what it means if a second attempt finds nothing: the first one has done it


def record(events: Iterable[Event], key: str | None) -> Call[Receipt]:
    """Post events. The key makes a repeated request count once; one is made up unless given."""
    key = key or uuid.uuid4().hex
    if not (key.isascii() and key.isprintable()):
        raise DataError(f"key {key!r}: an idempotency key is of printable ASCII characters")
    headers = {"Idempotency-Key": key}
    return Call("POST", "/v1/interactions", answers.receipt, body=list(map(_row, events)), headers=headers)


def recommend(
    user: Id,
    k: int,
    exclude_seen: bool | None,
    candidates: Sequence[Id] | None,
    tags: Sequence[str],
    why: bool,
) -> Call[Recommendations]:
    """Ask for items for a user."""
    query = _query(
        k=k, exclude_seen=exclude_seen, candidates=_listed(candidates), tags=_listed(tags or None), why=why or None
    )
    return Call("GET", f"/v1/users/{_part(user)}/recommendations", answers.recommendations, query)


def recommend_session(
    items: Sequence[Id], k: int, exclude_seen: bool | None, candidates: Sequence[Id] | None, tags: Sequence[str]
) -> Call[Recommendations]:
    """Ask for items for someone unknown who had these items."""
    body: dict[str, Any] = {"items": list(items), "k": k, "tags": list(tags)}
    if exclude_seen is not None:
        body["exclude_seen"] = exclude_seen
    if candidates is not None:
        body["candidates"] = list(candidates)
    return Call("POST", "/v1/recommendations", answers.recommendations, body=body)


def near(side: str, identifier: Id, relation: str, k: int) -> Call[Matches]:
    """Ask for similar items, an audience or neighbours."""
    return Call("GET", f"/v1/{side}/{_part(identifier)}/{relation}", answers.matches, _query(k=k))


def put_item(identifier: Id, title: str | None, tags: Sequence[str], available: bool) -> Call[Item]:
    """Say what an item is called, how it is tagged, and whether it may be recommended."""
    body = {"title": title, "tags": list(tags), "available": available}
    return Call("PUT", f"/v1/items/{_part(identifier)}", answers.item, body=body)


def item(identifier: Id) -> Call[Item]:
    """Ask for an item."""
    return Call("GET", f"/v1/items/{_part(identifier)}", answers.item)


def delete_item(identifier: Id) -> Call[None]:
    """Forget what was said about an item and recommend it no more."""
    return Call("DELETE", f"/v1/items/{_part(identifier)}", lambda _: None, gone=lambda: None)


def user(identifier: Id) -> Call[User]:
    """Ask for a user."""
    return Call("GET", f"/v1/users/{_part(identifier)}", answers.user)


def erase_user(identifier: Id) -> Call[Erasure]:
    """Erase a user."""
    return Call(
        "DELETE", f"/v1/users/{_part(identifier)}", answers.erasure, gone=lambda: Erasure(0, 0, 0, cleaned=False)
    )


def stats() -> Call[dict[str, Any]]:
    """Ask for the numbers of the service."""
    return Call("GET", "/v1/stats", dict)


def _row(event: Event) -> dict[str, Any]:
    if len(event) not in (2, 3):
        raise DataError(f"event {event!r}: give (user, item) or (user, item, time)")
    row: dict[str, Any] = {"user": event[0], "item": event[1]}
    if len(event) > 2:
        time = event[2]
        if isinstance(time, datetime):
            time = time.isoformat()
        elif not isinstance(time, str) and not _is_number(time):
            raise DataError(f"event {event!r}: the time is not a number; give seconds since 1970 or a datetime")
        row["timestamp"] = time
    return row


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and math.isfinite(value)


def _part(identifier: Id) -> str:
    return quote(str(identifier), safe="")


def _listed(values: Sequence[Id] | None) -> list[str] | None:
    """Several values of one parameter. A single one with a comma is given twice, so that it is not taken for a list."""
    if values is None:
        return None
    given = [str(value) for value in values]
    return given * 2 if len(given) == 1 and "," in given[0] else given or [""]


def _query(**given: Any) -> dict[str, Any]:
    """What is not None, as HTTP writes it."""
    return {name: str(v).lower() if isinstance(v, bool) else v for name, v in given.items() if v is not None}
