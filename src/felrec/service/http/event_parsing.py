"""Events as a client sends them: one object, a list, or lines of JSON. A bad row is refused alone, with its reason."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn

from felrec.service.engine.checks import read_id, read_time
from felrec.service.engine.limits import Limits
from felrec.service.engine.types import NewEvent, Rejected
from felrec.service.http.problems import Problem

FIELDS = {"user", "item", "timestamp"}
MAX_ROWS = Limits().submission


@dataclass
class Rows:
    """The good rows of a post, and why the others were refused."""

    events: list[NewEvent] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)


def read_rows(body: bytes, lines: bool) -> Rows:
    """Check every row of a body; `lines` says that it is one JSON value a line.

    >>> read_rows(b'[{"user": "ada", "item": 7}, 8]', lines=False).rejected
    [Rejected(row=1, reason='give an object with user, item and, if it is not now, timestamp')]
    """
    now, rows = time.time(), Rows()
    for number, given in _lines(body) if lines else enumerate(_values(body)):
        if len(rows.events) + len(rows.rejected) >= MAX_ROWS:
            raise Problem(413, f"more than {MAX_ROWS:,} rows; send them in several posts")
        try:
            rows.events.append(read_row(_parse(given) if lines else given, now))
        except ValueError as error:
            rows.rejected.append(Rejected(number, str(error)))
    return rows


def read_row(given: object, now: float) -> NewEvent:
    """Check one event.

    >>> read_row({"user": "ada", "item": 7, "timestamp": "2026-01-01T00:00:00Z"}, now=2e9)
    NewEvent(user='ada', item='7', timestamp=1767225600.0)
    """
    if not isinstance(given, dict):
        raise ValueError("give an object with user, item and, if it is not now, timestamp")
    if unknown := given.keys() - FIELDS:
        raise ValueError(f"no field {min(unknown)[:40]!r} is known; give user, item and timestamp")
    user, item = read_id(given.get("user"), "user"), read_id(given.get("item"), "item")
    return NewEvent(user, item, read_time(given.get("timestamp"), now))


def _values(body: bytes) -> list[Any]:
    try:
        value = _parse(body)
    except ValueError as error:
        raise Problem(422, f"the body is {error}") from None
    return value if isinstance(value, list) else [value]


def _lines(body: bytes) -> Iterator[tuple[int, bytes]]:
    """Lines that are not empty, numbered from 0 as they stand in the body."""
    return ((number, line) for number, line in enumerate(body.split(b"\n")) if line.strip())


def _parse(text: bytes) -> Any:
    try:
        return json.loads(text.decode(), parse_constant=_refuse)
    except (ValueError, RecursionError):  # also bytes that are not UTF-8, and numbers of thousands of digits
        raise ValueError("not valid JSON in UTF-8") from None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
