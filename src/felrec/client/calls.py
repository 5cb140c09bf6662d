"""The requests that the service understands and how to read the answers. Nothing here talks to a network."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial, update_wrapper
from typing import Any, Generic, Literal, TypeVar, get_args
from urllib.parse import quote

from felrec.answers.reading import read
from felrec.answers.statistics import FeedbackReceipt
from felrec.answers.types import (
    Erasure,
    FoundItems,
    Item,
    ItemsReceipt,
    NearItems,
    NearUsers,
    Receipt,
    Recommendations,
    User,
)
from felrec.client.events import Id, Moment, json_id
from felrec.errors import DataError

A = TypeVar("A")
Sorting = Literal["trending", "popular", "newest"]


@dataclass(frozen=True)
class Call(Generic[A]):
    """One request, and how to read its answer."""

    method: str
    path: str
    read: Callable[[Any], A]
    query: dict[str, Any] = field(default_factory=dict)
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    gone: Callable[[], A] | None = None  # the result if a retry finds nothing because an earlier attempt succeeded

    def request(self) -> dict[str, Any]:
        """The request as arguments of httpx."""
        sent = {"params": self.query, "json": self.body, "headers": self.headers}
        return {"method": self.method, "url": self.path, **sent}


def describe(method: Callable[..., Any], build: Callable[..., Call[Any]]) -> None:
    """Give a method of a client the name, docstring and signature of the function that builds its request."""
    update_wrapper(method, build)
    signature = inspect.signature(build, eval_str=True)
    parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD), *signature.parameters.values()]
    (answer,) = get_args(signature.return_annotation)
    method.__signature__ = inspect.Signature(parameters, return_annotation=answer)  # type: ignore[attr-defined]


def record(rows: list[dict[str, Any]], key: str) -> Call[Receipt]:
    """Post rows of events; repeating the call with the same key counts them once."""
    headers = {"Idempotency-Key": key}
    return Call("POST", "/v1/interactions", partial(read, Receipt), body=rows, headers=headers)


def recommend(
    user: Id,
    k: int = 10,
    *,
    exclude_seen: bool | None = None,
    candidates: Sequence[Id] | None = None,
    tags: Sequence[str] = (),
    all_tags: Sequence[str] = (),
    no_tags: Sequence[str] = (),
    exclude: Sequence[Id] = (),
    per_tag: int | None = None,
    offset: int = 0,
    explore: float = 0,
    why: bool = False,
) -> Call[Recommendations]:
    """The best k items for a user, out of all or of `candidates`, with any of the `tags`.

    Without `exclude`, with `all_tags` and none of `no_tags`, at most `per_tag` of one tag; from place `offset` on. A
    share of the places is for items without events: `explore`.
    """
    query = _query(
        k=k,
        exclude_seen=exclude_seen,
        candidates=_repeated(candidates, "candidates"),
        per_tag=per_tag,
        offset=offset or None,
        **_filters(tags=tags, all_tags=all_tags, no_tags=no_tags, exclude=exclude),
        explore=explore or None,
        why=why or None,
    )
    return Call("GET", f"/v1/users/{_part(user)}/recommendations", partial(read, Recommendations), query)


def recommend_session(
    items: Sequence[Id],
    k: int = 10,
    *,
    exclude_seen: bool | None = None,
    candidates: Sequence[Id] | None = None,
    tags: Sequence[str] = (),
    all_tags: Sequence[str] = (),
    no_tags: Sequence[str] = (),
    exclude: Sequence[Id] = (),
    per_tag: int | None = None,
    offset: int = 0,
    explore: float = 0,
) -> Call[Recommendations]:
    """The best k items for an anonymous user who had these items; nothing is recorded. Filters as in `recommend`."""
    lists = {"items": items, "tags": tags, "all_tags": all_tags, "no_tags": no_tags, "exclude": exclude}
    body: dict[str, Any] = {name: _listed(given, name) for name, given in lists.items()}
    body |= {"k": k, "per_tag": per_tag, "offset": offset, "explore": explore}
    if exclude_seen is not None:
        body["exclude_seen"] = exclude_seen
    if candidates is not None:
        body["candidates"] = _listed(candidates, "candidates")
    return Call("POST", "/v1/recommendations", partial(read, Recommendations), body=body)


def similar(item: Id, k: int = 10) -> Call[NearItems]:
    """The items most like this one."""
    return Call("GET", f"/v1/items/{_part(item)}/similar", partial(read, NearItems), _query(k=k))


def audience(item: Id, k: int = 10) -> Call[NearUsers]:
    """The users to show an item to."""
    return Call("GET", f"/v1/items/{_part(item)}/audience", partial(read, NearUsers), _query(k=k))


def neighbours(user: Id, k: int = 10) -> Call[NearUsers]:
    """The users most like this one."""
    return Call("GET", f"/v1/users/{_part(user)}/neighbours", partial(read, NearUsers), _query(k=k))


def list_items(
    sort: Sorting,
    limit: int = 10,
    *,
    hours: float | None = None,
    tags: Sequence[str] = (),
    all_tags: Sequence[str] = (),
    no_tags: Sequence[str] = (),
    exclude: Sequence[Id] = (),
    per_tag: int | None = None,
    offset: int = 0,
) -> Call[FoundItems]:
    """Items for everybody: trending, popular (in the last `hours`) or newest. Filters as in `recommend`."""
    query = _query(
        sort=sort,
        limit=limit,
        hours=hours,
        per_tag=per_tag,
        offset=offset or None,
        **_filters(tags=tags, all_tags=all_tags, no_tags=no_tags, exclude=exclude),
    )
    return Call("GET", "/v1/items", partial(read, FoundItems), query)


def put_item(
    item: Id,
    *,
    title: str | None = None,
    tags: Sequence[str] = (),
    available: bool = True,
    available_from: Moment = None,
    expires: Moment = None,
    variant_of: Id | None = None,
) -> Call[Item]:
    """Set the title and tags of an item, whether and when it may be recommended, and the item it is a variant of."""
    body = {
        "title": title,
        "tags": _listed(tags, "tags"),
        "available": available,
        "available_from": _json_time(available_from),
        "expires": _json_time(expires),
        "variant_of": variant_of,
    }
    return Call("PUT", f"/v1/items/{_part(item)}", partial(read, Item), body=body)


def put_items(rows: list[dict[str, Any]]) -> Call[ItemsReceipt]:
    """Post rows of items."""
    return Call("POST", "/v1/items", partial(read, ItemsReceipt), body=rows)


def report(rows: list[dict[str, Any]]) -> Call[FeedbackReceipt]:
    """Post reports of impressions and clicks."""
    return Call("POST", "/v1/feedback", partial(read, FeedbackReceipt), body=rows)


def item(item: Id) -> Call[Item]:
    """What is known about an item."""
    return Call("GET", f"/v1/items/{_part(item)}", partial(read, Item))


def delete_item(item: Id) -> Call[None]:
    """Delete the title and tags of an item and recommend it no more."""
    return Call("DELETE", f"/v1/items/{_part(item)}", lambda _: None, gone=lambda: None)


def user(user: Id) -> Call[User]:
    """A user's count of events and newest items."""
    return Call("GET", f"/v1/users/{_part(user)}", partial(read, User))


def erase_user(user: Id) -> Call[Erasure]:
    """Erase a user: events, history, vector and id. All counts are 0 if the answer to a first attempt was lost."""
    nothing_left = partial(Erasure, 0, 0, 0, cleaned=False)
    return Call("DELETE", f"/v1/users/{_part(user)}", partial(read, Erasure), gone=nothing_left)


def stats() -> Call[dict[str, Any]]:
    """The numbers of the service."""
    return Call("GET", "/v1/stats", dict)


def _part(identifier: Id) -> str:
    """An id as a part of a path."""
    name = str(json_id(identifier))
    if name in ("", ".", ".."):
        raise DataError(f"id {name!r} cannot stand in an address; give another one")
    return quote(name, safe="")


def _listed(values: Sequence[Id], name: str) -> list[Id]:
    """Several values; a string alone would be taken for its letters."""
    if isinstance(values, str):
        raise DataError(f"{name}={values!r}: give a list, [{values!r}]")
    return list(map(json_id, values))


def _repeated(values: Sequence[Id] | None, name: str) -> list[str] | None:
    """Several values of one parameter. A single one with a comma is given twice, so that it is not taken for a list."""
    if values is None:
        return None
    given = list(map(str, _listed(values, name)))
    return given * 2 if len(given) == 1 and "," in given[0] else given or [""]


def _json_time(moment: Moment) -> float | str | None:
    return moment.isoformat() if isinstance(moment, datetime) else moment


def _filters(**lists: Sequence[Id]) -> dict[str, list[str] | None]:
    return {name: _repeated(values or None, name) for name, values in lists.items()}


def _query(**given: Any) -> dict[str, Any]:
    """What is not None, as HTTP writes it."""
    return {name: str(v).lower() if isinstance(v, bool) else v for name, v in given.items() if v is not None}
