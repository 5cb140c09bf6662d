"""Types of path, query and body parameters, with their limits and encodings."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import unquote

from fastapi import Path, Query
from pydantic import BeforeValidator, Field, StringConstraints

from felrec.ids import CONTROL, MOST_CHARACTERS, spelled
from felrec.service.engine.limits import Limits

LIMITS = Limits()
IN_ADDRESS = 1_000  # ids in one URL, which may have 64 KiB in total
CLEAN = f"^[^{CONTROL}]+$"


def decoded(given: str) -> str:
    """Decode an id from a percent-encoded path.

    >>> decoded("a%2Fb")
    'a/b'
    """
    return unquote(given, errors="strict")


def listed(given: object) -> object:
    """Split a single parameter at commas; repeated parameters are not split, so that an id may contain a comma.

    >>> listed(["a,b"]), listed(["a,b", "c"])
    (['a', 'b'], ['a,b', 'c'])
    """
    if isinstance(given, list) and len(given) == 1:
        return [part for part in given[0].split(",") if part]
    return given


def unset(given: object) -> object:
    """Treat an empty parameter as missing."""
    return None if given == "" else given


Name = Annotated[str, StringConstraints(min_length=1, max_length=MOST_CHARACTERS, pattern=CLEAN)]
BodyId = Annotated[
    Name, BeforeValidator(spelled, json_schema_input_type=Name | int), Field(description="a string or a whole number")
]
Text = Annotated[str, StringConstraints(max_length=LIMITS.title_characters, pattern=r"^[^\x00]*$")]
Tag = Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=CLEAN)]

PathId = Annotated[
    str,
    Path(min_length=1, max_length=MOST_CHARACTERS, pattern=CLEAN, description="percent-encoded, including slashes"),
    BeforeValidator(decoded),
]
Count = Annotated[int, Query(ge=1, le=LIMITS.k, description="number of entries")]
ExcludeSeen = Annotated[bool | None, Query(description="default: the run's setting"), BeforeValidator(unset)]
IdList = Annotated[
    list[Name] | None,
    Query(max_length=IN_ADDRESS, description="separated by commas, or the parameter repeated"),
    BeforeValidator(listed),
]
TagList = Annotated[
    list[Tag] | None,
    Query(max_length=LIMITS.tags, description="only items with at least one of these; separated by commas"),
    BeforeValidator(listed),
]
AllTags = Annotated[
    list[Tag] | None,
    Query(max_length=LIMITS.tags, description="only items with all of these tags"),
    BeforeValidator(listed),
]
NoTags = Annotated[
    list[Tag] | None,
    Query(max_length=LIMITS.tags, description="only items with none of these tags"),
    BeforeValidator(listed),
]
Excluded = Annotated[
    list[Name] | None,
    Query(max_length=IN_ADDRESS, description="items to leave out, such as those of earlier pages"),
    BeforeValidator(listed),
]
PerTag = Annotated[int | None, Query(ge=1, le=LIMITS.k, description="most items with the same tag")]
Offset = Annotated[int, Query(ge=0, le=LIMITS.k, description="entries to skip")]
Explore = Annotated[float, Query(ge=0, le=1, description="share of the places given to items without events, by lot")]
