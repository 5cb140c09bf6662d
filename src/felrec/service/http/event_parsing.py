"""Parse events from clients: one object, a list, or lines of JSON. A bad row is rejected alone, with a reason."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Any, NamedTuple, NoReturn

import msgspec
import numpy as np

from felrec.answers.types import Rejected
from felrec.data.events import BEGINNING, EventColumns
from felrec.data.reading.timestamps import MILLISECONDS_FROM
from felrec.ids import CONTROL, MOST_CHARACTERS, check_id
from felrec.service.engine.limits import Limits
from felrec.service.http.event_fields import IgnoredFields, fields_of
from felrec.service.http.problems import Problem

LIMITS = Limits()
PlainId = Annotated[str, msgspec.Meta(min_length=1, max_length=MOST_CHARACTERS, pattern=rf"\A[^{CONTROL}]*\Z")]


class PlainEvent(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """An event as most clients send it."""

    user: PlainId
    item: PlainId
    timestamp: float | None = None


_DECODER: msgspec.json.Decoder[list[PlainEvent] | PlainEvent] = msgspec.json.Decoder(list[PlainEvent] | PlainEvent)


class ParsedEvents(NamedTuple):
    """What became of a body."""

    events: EventColumns
    rejected: list[Rejected]
    ignored: dict[str, int] | None = None  # in how many events each unknown field was ignored


def read_events(body: bytes, lines: bool, now: float, strict: bool = False) -> ParsedEvents:
    """The valid rows of a body, and the rejected ones with reasons; `lines`: the body has one JSON value per line.

    Rows in the future, as of `now`, are rejected, and if `strict` also those with unknown fields.

    >>> read_events(b'[{"user_id": "ada", "item": 7, "ts": 5, "price": 2}, 8]', lines=False, now=2e9)
    ParsedEvents(events=EventColumns(users=['ada'], items=['7'], times=array([5.])), rejected=[Rejected(row=1, \
reason='give an object with user, item and, unless it is now, timestamp')], ignored={'price': 1})
    """
    plain = None if lines else _plain_events(body, now)
    return ParsedEvents(plain, []) if plain is not None else _each_row(body, lines, now, strict)


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
    if len(rows) > LIMITS.submission or ((times < BEGINNING) | (times > latest)).any():  # NaN, now, is neither
        return None
    return EventColumns([row.user for row in rows], [row.item for row in rows], times)


def _each_row(body: bytes, lines: bool, now: float, strict: bool) -> ParsedEvents:
    rejected, ignored = list[Rejected](), IgnoredFields()
    users, items, times, numbers = list[str](), list[str](), list[float | None](), list[int]()
    for number, given in _lines(body) if lines else enumerate(_values(body)):
        if len(users) + len(rejected) >= LIMITS.submission:
            raise Problem(413, f"more than {LIMITS.submission:,} rows; send them in several requests")
        try:
            row = _checked(_parse(given) if lines else given)
            fields = fields_of(row.keys())
            if strict and fields.ignored:
                raise ValueError(f"unknown field {fields.ignored[0][:40]!r}; give user, item and timestamp")
            user, item = check_id(_value(row, fields.user), "user"), check_id(_value(row, fields.item), "item")
            moment = read_time(_value(row, fields.time), now)
        except ValueError as error:
            rejected.append(Rejected(number, str(error)))
        else:
            users.append(user)
            items.append(item)
            times.append(moment)
            numbers.append(number)
            ignored.add(fields.ignored)
    return ParsedEvents(EventColumns.of(users, items, times, numbers), rejected, ignored.counts())


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
    if not math.isfinite(seconds) or seconds < BEGINNING:
        raise ValueError("timestamp: give seconds since 1970 that are finite and not before the year 1")
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
    return given


def _value(row: dict[str, Any], field: str | None) -> Any:
    return None if field is None else row[field]


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
