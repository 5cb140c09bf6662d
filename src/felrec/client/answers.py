"""What the service answers, as small typed records. Fields that a newer service adds are left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

A = TypeVar("A")


@dataclass(frozen=True)
class Rejected:
    """A row that was refused, counted from 0, and why."""

    row: int
    reason: str


@dataclass(frozen=True)
class Receipt:
    """What became of a post of events; all that is `accepted` is on disk."""

    accepted: int
    late: int
    rejected: tuple[Rejected, ...]
    events: int


@dataclass(frozen=True)
class Reason:
    """An item of the history that speaks for a recommendation, and how much."""

    id: str
    title: str | None
    weight: float


@dataclass(frozen=True)
class Recommendation:
    """An item, its score, and why (if that was asked for)."""

    id: str
    score: float
    title: str | None
    tags: tuple[str, ...]
    why: tuple[Reason, ...] = ()


@dataclass(frozen=True)
class Recommendations:
    """The best items, best first; `known` is false for a user without any event.

    `ignored` are candidates, or items of a session, that no event has named yet.
    """

    items: tuple[Recommendation, ...]
    known: bool
    milliseconds: float
    ignored: tuple[str, ...] = ()


@dataclass(frozen=True)
class Match:
    """An item or a user that is near."""

    id: str
    score: float
    title: str | None = None


@dataclass(frozen=True)
class Matches:
    """Items or users, nearest first."""

    matches: tuple[Match, ...]


@dataclass(frozen=True)
class Item:
    """An item and what was said about it."""

    id: str
    title: str | None
    tags: tuple[str, ...]
    available: bool
    events: int


@dataclass(frozen=True)
class HistoryEntry:
    """An item that a user had, and when (seconds since 1970)."""

    id: str
    title: str | None
    timestamp: float | None


@dataclass(frozen=True)
class User:
    """A user: how many events, and the newest of them."""

    id: str
    events: int
    history: tuple[HistoryEntry, ...]


@dataclass(frozen=True)
class Erasure:
    """What an erasure removed; `cleaned` says that the old pages of the file are gone already."""

    events: int
    items_rewritten: int
    items_removed: int
    cleaned: bool


def take(kind: type[A], given: Mapping[str, Any], **parsed: Any) -> A:
    """A record of the fields it knows; lists become tuples, and `parsed` stands in for what was nested."""
    known = {field.name for field in fields(kind) if field.name in given}  # type: ignore[arg-type]
    plain = {name: tuple(value) if isinstance(value := given[name], list) else value for name in known}
    return kind(**{**plain, **parsed})


def many(kind: type[A]) -> Callable[[list[Mapping[str, Any]]], tuple[A, ...]]:
    """Read a list of records."""
    return lambda entries: tuple(take(kind, entry) for entry in entries)


def receipt(given: Mapping[str, Any]) -> Receipt:
    """Read the answer to a post of events."""
    return take(Receipt, given, rejected=many(Rejected)(given["rejected"]))


def recommendations(given: Mapping[str, Any]) -> Recommendations:
    """Read recommendations."""
    items = tuple(take(Recommendation, entry, why=many(Reason)(entry.get("why") or [])) for entry in given["items"])
    return take(Recommendations, given, items=items)


def matches(given: Mapping[str, Any]) -> Matches:
    """Read similar items, an audience or neighbours."""
    return Matches(many(Match)(given["items"] if "items" in given else given["users"]))


def item(given: Mapping[str, Any]) -> Item:
    """Read an item."""
    return take(Item, given)


def user(given: Mapping[str, Any]) -> User:
    """Read a user."""
    return take(User, given, history=many(HistoryEntry)(given["history"]))


def erasure(given: Mapping[str, Any]) -> Erasure:
    """Read what an erasure removed."""
    return take(Erasure, given)
