"""The requests that the service understands and how to read the answers. Nothing here talks to a network."""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from numbers import Real
from typing import Any, Generic, TypeVar
from urllib.parse import quote

from felrec.answers.reading import read
from felrec.answers.types import Erasure, Item, Receipt, Recommendations, User
from felrec.errors import DataError
from felrec.ids import is_text, spelled

A = TypeVar("A")
Id = str | int
Event = tuple[Id, Id] | tuple[Id, Id, float | datetime | str | None]
"""User, item, and the time: seconds since 1970, a datetime or ISO 8601 (UTC unless they name a zone); else now."""


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
    return Call("POST", "/v1/interactions", partial(read, Receipt), body=list(map(_row, events)), headers=headers)


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
        k=k,
        exclude_seen=exclude_seen,
        candidates=_repeated(candidates, "candidates"),
        tags=_repeated(tags or None, "tags"),
        why=why or None,
    )
    return Call("GET", f"/v1/users/{_part(user)}/recommendations", partial(read, Recommendations), query)


def recommend_session(
    items: Sequence[Id], k: int, exclude_seen: bool | None, candidates: Sequence[Id] | None, tags: Sequence[str]
) -> Call[Recommendations]:
    """Ask for items for an anonymous user who had these items."""
    body: dict[str, Any] = {"items": _listed(items, "items"), "k": k, "tags": _listed(tags, "tags")}
    if exclude_seen is not None:
        body["exclude_seen"] = exclude_seen
    if candidates is not None:
        body["candidates"] = _listed(candidates, "candidates")
    return Call("POST", "/v1/recommendations", partial(read, Recommendations), body=body)


def near(kind: type[A], side: str, identifier: Id, relation: str, k: int) -> Call[A]:
    """Ask for similar items, an audience or neighbours."""
    return Call("GET", f"/v1/{side}/{_part(identifier)}/{relation}", partial(read, kind), _query(k=k))


def put_item(identifier: Id, title: str | None, tags: Sequence[str], available: bool) -> Call[Item]:
    """Say what an item is called, how it is tagged, and whether it may be recommended."""
    body = {"title": title, "tags": _listed(tags, "tags"), "available": available}
    return Call("PUT", f"/v1/items/{_part(identifier)}", partial(read, Item), body=body)


def item(identifier: Id) -> Call[Item]:
    """Ask for an item."""
    return Call("GET", f"/v1/items/{_part(identifier)}", partial(read, Item))


def delete_item(identifier: Id) -> Call[None]:
    """Forget what was said about an item and recommend it no more."""
    return Call("DELETE", f"/v1/items/{_part(identifier)}", lambda _: None, gone=lambda: None)


def user(identifier: Id) -> Call[User]:
    """Ask for a user."""
    return Call("GET", f"/v1/users/{_part(identifier)}", partial(read, User))


def erase_user(identifier: Id) -> Call[Erasure]:
    """Erase a user."""
    return Call(
        "DELETE", f"/v1/users/{_part(identifier)}", partial(read, Erasure), gone=lambda: Erasure(0, 0, 0, cleaned=False)
    )


def stats() -> Call[dict[str, Any]]:
    """Ask for the numbers of the service."""
    return Call("GET", "/v1/stats", dict)


def _row(event: Event) -> dict[str, Any]:
    if not isinstance(event, tuple | list) or len(event) not in (2, 3):
        raise DataError(f"event {event!r}: give (user, item) or (user, item, time)")
    row: dict[str, Any] = {"user": _id(event[0]), "item": _id(event[1])}
    if len(event) == 3 and event[2] is not None:
        row["timestamp"] = _time(event[2], event)
    return row


def _time(time: object, event: Event) -> float | str:
    if isinstance(time, datetime):
        return time.isoformat()
    if isinstance(time, Real) and math.isfinite(time):
        return float(time)
    if isinstance(time, str):
        return time  # the service reads it
    raise DataError(f"event {event!r}: the time is not a number; give seconds since 1970 or a datetime")


def _id(value: Id) -> Id:
    """An id that JSON can carry. Whether it is a good one is for the service to say, row by row."""
    text = spelled(value)
    if not isinstance(text, str) or not is_text(text):
        raise DataError(f"id {value!r}: give a string or a whole number")
    return text if isinstance(value, str) else int(text)


def _part(identifier: Id) -> str:
    """An id as a part of a path."""
    name = str(_id(identifier))
    if name in ("", ".", ".."):
        raise DataError(f"id {name!r} cannot stand in an address; give another one")
    return quote(name, safe="")


def _listed(values: Sequence[Id], name: str) -> list[Id]:
    """Several values; a string alone would be taken for its letters."""
    if isinstance(values, str):
        raise DataError(f"{name}={values!r}: give a list, [{values!r}]")
    return list(map(_id, values))


def _repeated(values: Sequence[Id] | None, name: str) -> list[str] | None:
    """Several values of one parameter. A single one with a comma is given twice, so that it is not taken for a list."""
    if values is None:
        return None
    given = list(map(str, _listed(values, name)))
    return given * 2 if len(given) == 1 and "," in given[0] else given or [""]


def _query(**given: Any) -> dict[str, Any]:
    """What is not None, as HTTP writes it."""
    return {name: str(v).lower() if isinstance(v, bool) else v for name, v in given.items() if v is not None}
