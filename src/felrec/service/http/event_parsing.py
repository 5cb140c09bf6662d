"""Parse events from clients: one object, a list, or lines of JSON. A bad row is rejected alone, with a reason."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Any, NoReturn

import msgspec
import numpy as np

from felrec.answers.types import Rejected
from felrec.data.events import EventColumns
from felrec.data.reading.timestamps import MILLISECONDS_FROM
from felrec.ids import CONTROL, MOST_CHARACTERS, check_id
from felrec.service.engine.limits import Limits
from felrec.service.http.problems import Problem

FIELDS = {"user", "item", "timestamp"}
LIMITS = Limits()
PlainId = Annotated[str, msgspec.Meta(min_length=1, max_length=MOST_CHARACTERS, pattern=rf"\A[^{CONTROL}]*\Z")]


class PlainEvent(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """An event as most clients send it."""

    user: PlainId
    item: PlainId
    timestamp: float | None = None


_DECODER: msgspec.json.Decoder[list[PlainEvent] | PlainEvent] = msgspec.json.Decoder(list[PlainEvent] | PlainEvent)


def read_events(body: bytes, lines: bool, now: float) -> tuple[EventColumns, list[Rejected]]:
    """The valid rows of a body, and the rejected ones with reasons; `lines`: the body has one JSON value per line.

    Rows in the future, as of `now`, are rejected.

    >>> read_events(b'[{"user": "ada", "item": 7, "timestamp": 5}, 8]', lines=False, now=2e9)
    (EventColumns(users=['ada'], items=['7'], times=array([5.])), \
[Rejected(row=1, reason='give an object with user, item and, unless it is now, timestamp')])
    """
    plain = None if lines else _plain_events(body, now)
    return (plain, []) if plain is not None else _each_row(body, lines, now)


def _plain_events(body: bytes, now: float) -> EventColumns | None:
    """The events of a body in which nothing is wrong or unusual, as nearly all are, sooner than row by row; else None.

    >>> _plain_events(b'[{"user": "ada", "item": "tea"}]', now=2e9)
    EventColumns(users=['ada'], items=['tea'], times=array([nan]))
    >>> _plain_events(b'[{"user": "ada", "item": 7}]', now=2e9)
    """
    try:
        decoded = _DECODER.decode(body)
    except (ValueError, RecursionError):
        return None
    rows = decoded if isinstance(decoded, list) else [decoded]
    times = np.array([row.timestamp for row in rows], dtype=np.float64)
    latest = min(now + LIMITS.future_seconds, np.nextafter(MILLISECONDS_FROM, 0))
    if len(rows) > LIMITS.submission or ((times < 0) | (times > latest)).any():  # NaN, now, is neither
        return None
    return EventColumns([row.user for row in rows], [row.item for row in rows], times)


def _each_row(body: bytes, lines: bool, now: float) -> tuple[EventColumns, list[Rejected]]:
    rejected = list[Rejected]()
    users, items, times, numbers = list[str](), list[str](), list[float | None](), list[int]()
    for number, given in _lines(body) if lines else enumerate(_values(body)):
        if len(users) + len(rejected) >= LIMITS.submission:
            raise Problem(413, f"more than {LIMITS.submission:,} rows; send them in several requests")
        try:
            row = _checked(_parse(given) if lines else given)
            user, item = check_id(row.get("user"), "user"), check_id(row.get("item"), "item")
            moment = read_time(row.get("timestamp"), now)
        except ValueError as error:
            rejected.append(Rejected(number, str(error)))
        else:
            users.append(user)
            items.append(item)
            times.append(moment)
            numbers.append(number)
    return EventColumns.of(users, items, times, numbers), rejected


def read_time(given: object, now: float) -> float | None:
    """Seconds since 1970, from a number or ISO 8601 (UTC if it has no time zone); None means now and stays None.

    >>> read_time("2026-01-01T00:00:00Z", now=2e9)
    1767225600.0
    """
    if given is None:
        return None
    if isinstance(given, str):
        seconds = _iso(given)
    elif isinstance(given, int | float) and not isinstance(given, bool):
        seconds = float(given) if abs(given) < 1e18 else math.inf
    else:
        raise ValueError("timestamp: give seconds since 1970, or ISO 8601")
    if not math.isfinite(seconds) or seconds < 0:
        raise ValueError("timestamp: give seconds since 1970 that are finite and not negative")
    if seconds >= MILLISECONDS_FROM:
        raise ValueError("timestamp: after the year 5000; give seconds, not milliseconds")
    if seconds > now + LIMITS.future_seconds:
        raise ValueError(f"timestamp: more than {LIMITS.future_seconds:.0f} s in the future; set the sender's clock")
    return seconds


def _iso(given: str) -> float:
    try:
        moment = datetime.fromisoformat(given)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise ValueError("timestamp: not ISO 8601; write it as 2026-01-31T12:00:00Z") from None


def _checked(given: object) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise ValueError("give an object with user, item and, unless it is now, timestamp")
    if unknown := given.keys() - FIELDS:
        raise ValueError(f"unknown field {min(unknown)[:40]!r}; give user, item and timestamp")
    return given


def _values(body: bytes) -> list[Any]:
    try:
        value = _parse(body)
    except ValueError as error:
        raise Problem(422, f"the body is {error}") from None
    return value if isinstance(value, list) else [value]


def _lines(body: bytes) -> Iterator[tuple[int, bytes]]:
    """Non-empty lines with their line numbers in the body, from 0."""
    return ((number, line) for number, line in enumerate(body.split(b"\n")) if line.strip())


def _parse(text: bytes) -> Any:
    try:
        return json.loads(text.decode(), parse_constant=_refuse)
    except (ValueError, RecursionError):  # also for bytes that are not UTF-8, and for numbers with thousands of digits
        raise ValueError("not valid JSON in UTF-8") from None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
