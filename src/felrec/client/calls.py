"""The requests that the service understands and how to read the answers. Nothing here talks to a network."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial, update_wrapper
from typing import Any, Generic, TypeVar, get_args
from urllib.parse import quote

from felrec.answers.reading import read
from felrec.answers.types import Erasure, Item, NearItems, NearUsers, Receipt, Recommendations, User
from felrec.client.events import Id, json_id
from felrec.errors import DataError

A = TypeVar("A")


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
    why: bool = False,
) -> Call[Recommendations]:
    """The best k items for a user, out of all or of `candidates`, with any of the `tags`."""
    query = _query(
        k=k,
        exclude_seen=exclude_seen,
        candidates=_repeated(candidates, "candidates"),
        tags=_repeated(tags or None, "tags"),
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
) -> Call[Recommendations]:
    """The best k items for an anonymous user who had these items; nothing is recorded."""
    body: dict[str, Any] = {"items": _listed(items, "items"), "k": k, "tags": _listed(tags, "tags")}
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


def put_item(item: Id, *, title: str | None = None, tags: Sequence[str] = (), available: bool = True) -> Call[Item]:
    """Set the title and tags of an item, and whether it may be recommended."""
    body = {"title": title, "tags": _listed(tags, "tags"), "available": available}
    return Call("PUT", f"/v1/items/{_part(item)}", partial(read, Item), body=body)


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


def _query(**given: Any) -> dict[str, Any]:
    """What is not None, as HTTP writes it."""
    return {name: str(v).lower() if isinstance(v, bool) else v for name, v in given.items() if v is not None}
