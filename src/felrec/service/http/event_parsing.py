"""Parse events from clients: one object, a list, or lines of JSON. A bad row is rejected alone, with a reason."""

from __future__ import annotations

import math
import sys
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np

from felrec.answers.types import Rejected
from felrec.data.events import BEGINNING, EventColumns
from felrec.data.kinds import KindTable
from felrec.data.reading.timestamps import MILLISECONDS_FROM
from felrec.ids import CONTROL, MOST_CHARACTERS, check_id
from felrec.service.http.event_fields import IgnoredFields, fields_of
from felrec.service.http.row_bodies import LIMITS, as_object, rows_of

_ADVICE = "give an object with user, item and, unless it is now, timestamp"
PlainId = Annotated[str, msgspec.Meta(min_length=1, max_length=MOST_CHARACTERS, pattern=rf"\A[^{CONTROL}]*\Z")]


class PlainEvent(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """An event as most clients send it."""

    user: PlainId
    item: PlainId
    timestamp: float | None = None


class KindEvent(PlainEvent):
    """The same for a service with a table of kinds."""

    kind: str | None = None
    value: float | None = None


_DECODER: msgspec.json.Decoder[list[PlainEvent] | PlainEvent] = msgspec.json.Decoder(list[PlainEvent] | PlainEvent)
_KIND_DECODER: msgspec.json.Decoder[list[KindEvent] | KindEvent] = msgspec.json.Decoder(list[KindEvent] | KindEvent)


class ParsedEvents(NamedTuple):
    """What became of a body."""

    events: EventColumns
    rejected: list[Rejected]
    ignored: dict[str, int] | None = None  # in how many events each unknown field was ignored
    left_out: int | None = None  # valid events that the table of kinds leaves out


def read_events(
    body: bytes, lines: bool, now: float, strict: bool = False, kinds: KindTable | None = None
) -> ParsedEvents:
    """The valid rows of a body, and the rejected ones with reasons; `lines`: the body has one JSON value per line.

    Rows in the future, as of `now`, are rejected, and if `strict` also those with unknown fields. With a table of kinds
    each event has a weight; without one, kind and value are unknown fields.

    >>> read_events(b'[{"user_id": "ada", "item": 7, "ts": 5, "price": 2}, 8]', lines=False, now=2e9)
    ParsedEvents(events=EventColumns(users=['ada'], items=['7'], times=array([5.])), rejected=[Rejected(row=1, \
reason='give an object with user, item and, unless it is now, timestamp')], ignored={'price': 1}, left_out=None)
    """
    plain = None if lines else _plain_events(body, now, kinds)
    return plain if plain is not None else _each_row(body, lines, now, strict, kinds)


def _plain_events(body: bytes, now: float, kinds: KindTable | None = None) -> ParsedEvents | None:
    """The events of a body in which nothing is wrong or unusual, as nearly all are, sooner than row by row; else None.

    >>> _plain_events(b'[{"user": "ada", "item": "tea"}]', now=2e9).events
    EventColumns(users=['ada'], items=['tea'], times=array([nan]))
    >>> _plain_events(b'[{"user": "ada", "item": 7}]', now=2e9)
    """
    try:
        decoded = _DECODER.decode(body) if kinds is None else _KIND_DECODER.decode(body)
    except (ValueError, RecursionError):
        return None
    rows = decoded if isinstance(decoded, list) else [decoded]
    times = np.array([row.timestamp for row in rows], dtype=np.float64)
    latest = min(now + LIMITS.future_seconds, np.nextafter(MILLISECONDS_FROM, 0))
    if len(rows) > LIMITS.submission or ((times < BEGINNING) | (times > latest)).any():  # NaN, now, is neither
        return None
    events = EventColumns([row.user for row in rows], [row.item for row in rows], times)
    if kinds is None:
        return ParsedEvents(events, [])
    said = [(row.kind, row.value) for row in rows if isinstance(row, KindEvent)]
    weighted, left_out = _weighed(events, said, kinds)
    return ParsedEvents(weighted, [], left_out=left_out)


def _weighed(
    events: EventColumns, said: list[tuple[str | None, float | None]], kinds: KindTable
) -> tuple[EventColumns, int | None]:
    """The events that a table of kinds keeps, with their weights, and how many it leaves out."""
    weights, kept = kinds.weights([kind for kind, _ in said], [value for _, value in said])
    weighted = replace(events, weights=weights)
    if kept.all():
        return weighted, None
    return weighted[np.flatnonzero(kept)], int((~kept).sum())


def _each_row(body: bytes, lines: bool, now: float, strict: bool, kinds: KindTable | None) -> ParsedEvents:
    rejected, ignored = list[Rejected](), IgnoredFields()
    users, items, times, numbers = list[str](), list[str](), list[float | None](), list[int]()
    said = list[tuple[str | None, float | None]]()
    for number, given in rows_of(body, lines):
        try:
            row = as_object(given, _ADVICE)
            fields = fields_of(row.keys(), kinds is not None)
            if strict and fields.ignored:
                known = "user, item and timestamp" if kinds is None else "user, item, timestamp, kind and value"
                raise ValueError(f"unknown field {fields.ignored[0][:40]!r}; give {known}")
            user, item = check_id(_value(row, fields.user), "user"), check_id(_value(row, fields.item), "item")
            moment = read_time(_value(row, fields.time), now)
            meant = _kind(_value(row, fields.kind)), _number(_value(row, fields.value))
        except ValueError as error:
            rejected.append(Rejected(number, str(error)))
        else:
            users.append(user)
            items.append(item)
            times.append(moment)
            numbers.append(number)
            said.append(meant)
            ignored.add(fields.ignored)
    events, left_out = EventColumns.of(users, items, times, numbers), None
    if kinds is not None:
        events, left_out = _weighed(events, said, kinds)
    return ParsedEvents(events, rejected, ignored.counts(), left_out)


def _kind(given: object) -> str | None:
    if given is None or isinstance(given, str):
        return given
    if isinstance(given, int) and not isinstance(given, bool):
        return str(given)
    raise ValueError("kind: give a string, such as view or purchase")


def _number(given: object) -> float | None:
    if given is None:
        return None
    if isinstance(given, int | float) and not isinstance(given, bool) and abs(given) <= sys.float_info.max:
        return float(given)
    raise ValueError("value: give a finite number, such as a rating")


def read_time(given: object, now: float) -> float | None:
    """Seconds since 1970, from ISO 8601 (UTC if it has no time zone) or a number, also as text; None, now, stays None.

    >>> read_time("2026-01-01T00:00:00Z", now=2e9), read_time("1767225600", now=2e9)
    (1767225600.0, 1767225600.0)
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
        with suppress(ValueError):
            return float(given)
        raise ValueError("timestamp: not ISO 8601; write it as 2026-01-31T12:00:00Z") from None


def _value(row: dict[str, Any], field: str | None) -> Any:
    return None if field is None else row[field]
