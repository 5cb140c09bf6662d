"""Read messages as events, by the rules of POST /v1/interactions."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from felrec.data.events import EventColumns
from felrec.data.kinds import KindTable
from felrec.service.http.event_fields import fields_of
from felrec.service.http.event_parsing import read_events
from felrec.service.streams.protocol import Message, Rejection

_NUMBER = re.compile(rb"-?\d{1,300}(\.\d+)?")  # JSON has no infinity, so longer ones stay text


class ReadMessages(NamedTuple):
    """What became of messages."""

    events: EventColumns
    messages: list[Message]  # of each event
    rejected: list[Rejection]
    left_out: int  # valid events that the table of kinds leaves out


def read_messages(messages: Sequence[Message], now: float, kinds: KindTable | None = None) -> ReadMessages:
    """The events of messages, and the messages that are none. An event without a time has that of its message.

    >>> good, bad = Message((0, 1), b'{"user_id": "ada", "item": 7}', 5.0), Message((0, 2), b"tea", 6.0)
    >>> read = read_messages([good, bad], now=9.0)
    >>> read.events, read.rejected[0].reason
    (EventColumns(users=['ada'], items=['7'], times=array([5.])), 'not valid JSON in UTF-8')
    """
    parsed = read_events(b"\n".join(_line(message.body) for message in messages), lines=True, now=now, kinds=kinds)
    rejected = [Rejection(messages[row.row], row.reason) for row in parsed.rejected]
    events = parsed.events
    good = [messages[events.number(place)] for place in range(len(events))]
    put = np.array([message.time for message in good])
    timed = replace(events, times=np.where(np.isnan(events.times), put, events.times), numbers=None)
    return ReadMessages(timed, good, rejected, parsed.left_out or 0)


def _line(body: bytes) -> bytes:
    """A body on one line. Within a string of JSON there are no line breaks, elsewhere they are spaces."""
    return body.replace(b"\n", b" ") if body.strip() else b"null"


def to_json(fields: Mapping[bytes, bytes]) -> bytes:
    """The fields of a Redis entry as one JSON object: those of an event, or one field with any name that holds it.

    >>> to_json({b"user": b"ada", b"item": b"007", b"time": b"1700000000.5", b"rating": b"4"})
    b'{"user": "ada", "item": "007", "time": 1700000000.5, "rating": 4.0}'
    >>> to_json({b"event": b'{"user": "ada", "item": "tea"}'})
    b'{"user": "ada", "item": "tea"}'
    """
    if len(fields) == 1 and (value := next(iter(fields.values()))).lstrip().startswith(b"{"):
        return value
    try:
        texts: dict[str, Any] = {name.decode(): value.decode() for name, value in fields.items()}
    except UnicodeDecodeError:
        return b" ".join(name + b"=" + value for name, value in fields.items())  # it is rejected as it is
    known = fields_of(texts.keys(), with_kinds=True)
    for name in (known.time, known.value):
        if name is not None and _NUMBER.fullmatch(fields[name.encode()]):
            texts[name] = float(texts[name])
    return json.dumps(texts, ensure_ascii=False).encode()
