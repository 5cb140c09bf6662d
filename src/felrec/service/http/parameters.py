"""What a request may carry in its path, its query and its fields, and how it is written there."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import unquote

from fastapi import Path, Query
from pydantic import BeforeValidator, Field, StringConstraints

from felrec.ids import CONTROL, MOST_CHARACTERS, spelled
from felrec.service.engine.limits import Limits

LIMITS = Limits()
IN_ADDRESS = 1_000  # ids in one address, which may have 64 KiB in all
CLEAN = f"^[^{CONTROL}]+$"


def decoded(given: str) -> str:
    """An id out of a path, where it is still percent-encoded.

    >>> decoded("a%2Fb")
    'a/b'
    """
    return unquote(given, errors="strict")


def listed(given: object) -> object:
    """One parameter is a list with commas; several are taken as they are, so that an id may hold a comma.

    >>> listed(["a,b"]), listed(["a,b", "c"])
    (['a', 'b'], ['a,b', 'c'])
    """
    if isinstance(given, list) and len(given) == 1:
        return [part for part in given[0].split(",") if part]
    return given


def unset(given: object) -> object:
    """An empty parameter is none."""
    return None if given == "" else given


Name = Annotated[str, StringConstraints(min_length=1, max_length=MOST_CHARACTERS, pattern=CLEAN)]
BodyId = Annotated[
    Name, BeforeValidator(spelled, json_schema_input_type=Name | int), Field(description="a string or a whole number")
]
Text = Annotated[str, StringConstraints(max_length=LIMITS.title_characters, pattern=r"^[^\x00]*$")]
Tag = Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=CLEAN)]

PathId = Annotated[
    str,
    Path(min_length=1, max_length=MOST_CHARACTERS, pattern=CLEAN, description="percent-encoded, slashes too"),
    BeforeValidator(decoded),
]
Count = Annotated[int, Query(ge=1, le=LIMITS.k, description="how many")]
ExcludeSeen = Annotated[bool | None, Query(description="the run's own rule unless given"), BeforeValidator(unset)]
IdList = Annotated[
    list[Name] | None,
    Query(max_length=IN_ADDRESS, description="with commas between, or the parameter several times"),
    BeforeValidator(listed),
]
TagList = Annotated[
    list[Tag] | None,
    Query(max_length=LIMITS.tags, description="only items that have one of these; with commas between"),
    BeforeValidator(listed),
]
