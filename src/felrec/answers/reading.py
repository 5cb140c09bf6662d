"""Answers out of their JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from functools import cache
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from felrec.answers.types import Answer

A = TypeVar("A")


def read(kind: type[A], given: Mapping[str, Any]) -> A:
    """Fields that a newer service adds are left out; a list that may be missing is then empty.

    >>> from felrec.answers.types import User
    >>> history = [{"id": "tea", "title": None, "timestamp": 5.0}]
    >>> read(User, {"id": "ada", "events": 1, "history": history, "added later": 7}).history[0].id
    'tea'
    """
    values: dict[str, Any] = {}
    for name, (entry, may_be_missing) in _lists(kind).items():  # type: ignore[arg-type]
        entries = given.get(name, ()) if may_be_missing else given[name]
        values[name] = tuple(read(entry, one) if issubclass(entry, Answer) else one for one in entries)
    plain = {one.name: given[one.name] for one in fields(kind) if one.name in given}  # type: ignore[arg-type]
    return kind(**plain | values)


@cache
def _lists(kind: type) -> dict[str, tuple[type, bool]]:
    """The fields that are lists: the type of their entries, and whether the JSON may lack them."""
    hints, found = get_type_hints(kind), {}
    for one in fields(kind):
        if get_origin(hint := hints[one.name]) is tuple:
            found[one.name] = (get_args(hint)[0], one.default_factory is not MISSING)
    return found
