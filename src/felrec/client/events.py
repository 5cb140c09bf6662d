"""Events as callers have them, tuples, dictionaries or a frame, as rows of posts that are not too long."""

from __future__ import annotations

import math
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, datetime
from numbers import Real
from typing import Any

from felrec.answers.types import Receipt
from felrec.client.posts import cut
from felrec.errors import DataError, ServiceError
from felrec.ids import is_text, spelled

Id = str | int
Moment = float | datetime | str | None
"""Seconds since 1970, a datetime or ISO 8601 (UTC unless they name a zone); None is now."""
Event = tuple[Id, Id] | tuple[Id, Id, Moment] | Mapping[str, Any]
"""User, item and time; or a mapping with `user`, `item` and `timestamp`, also as `user_id`, `item_id` and `time`.

A mapping may also have `kind` and `value`, for a service that was started with a table of kinds.
"""

_NAMES = {"user": ("user", "user_id"), "item": ("item", "item_id"), "timestamp": ("timestamp", "time")}
_OPTIONAL = ("kind", "value")  # of a frame: a service with a table of kinds reads them


@dataclass(frozen=True)
class Parts:
    """The rows of several posts, and what their answers say together."""

    rows: list[list[dict[str, Any]]]
    key: str

    def key_of(self, part: int) -> str:
        """The idempotency key of a part: if all parts are sent again, those that arrived count once."""
        return f"{self.key}-{part}" if part else self.key

    @contextmanager
    def sending(self, part: int) -> Iterator[None]:
        """Say in an error what was stored before it, and how to go on."""
        try:
            yield
        except ServiceError as error:
            if part:
                stored = sum(map(len, self.rows[:part]))
                advice = f"{stored:,} of {sum(map(len, self.rows)):,} rows were sent before; to go on, repeat the call"
                error.args = (f"{error} ({advice} with key={self.key!r})",)
            raise

    def joined(self, receipts: list[Receipt]) -> Receipt:
        """One receipt of all; rows are counted through."""
        rejected, start, ignored = [], 0, Counter[str]()
        for rows, receipt in zip(self.rows, receipts, strict=True):
            ignored.update(receipt.ignored or {})
            rejected += [replace(one, row=start + one.row) for one in receipt.rejected]
            start += len(rows)
        accepted, late = sum(one.accepted for one in receipts), sum(one.late for one in receipts)
        left_out = sum(one.left_out or 0 for one in receipts) or None
        return Receipt(accepted, late, tuple(rejected), receipts[-1].events, dict(ignored) or None, left_out)


def parts_of(events: Iterable[Event] | Any, key: str | None) -> Parts:
    """Check all events before any is sent, and cut them into posts.

    >>> parts_of([("ada", "tea"), {"user_id": "bob", "item_id": "milk", "time": 5}], "k").rows
    [[{'user': 'ada', 'item': 'tea'}, {'user': 'bob', 'item': 'milk', 'timestamp': 5.0}]]
    """
    key = key or uuid.uuid4().hex
    if not (key.isascii() and key.isprintable()):
        raise DataError(f"key {key!r}: an idempotency key is of printable ASCII characters")
    rows = list(map(_row, _of_frame(events) if hasattr(events, "columns") else events))
    return Parts(cut(rows, lambda row: 100 + 4 * sum(len(str(value)) for value in row.values())), key)


def json_id(value: Id) -> Id:
    """An id that JSON can carry. Whether it is a good one is for the service to say, row by row."""
    text = spelled(value)
    if not isinstance(text, str) or not is_text(text):
        raise DataError(f"id {value!r}: give a string or a whole number")
    return text if isinstance(value, str) else int(text)


def _of_frame(frame: Any) -> Iterator[tuple[Any, ...] | dict[str, Any]]:
    """The users, items, times, kinds and values of a pandas or polars frame; other columns are left out."""
    names = list(map(str, frame.columns))
    found = {role: next((name for name in usual if name in names), None) for role, usual in _NAMES.items()}
    if found["user"] is None or found["item"] is None:
        shown = ", ".join(names[:12])
        raise DataError(f"the frame has the columns {shown}; name them user, item and, unless it is now, timestamp")
    columns = {role: frame[name].to_list() for role, name in found.items() if name is not None}
    said = {name: frame[name].to_list() for name in _OPTIONAL if name in names}
    if not said:
        yield from zip(*columns.values(), strict=True)
        return
    for row in zip(*columns.values(), *said.values(), strict=True):
        event = dict(zip((*columns, *said), row, strict=True))
        yield {name: value for name, value in event.items() if name not in said or not _is_missing(value)}


def _is_missing(value: Any) -> bool:
    """Whether a frame has no value here: None, or NaN."""
    return value is None or value != value


def _row(event: Event) -> dict[str, Any]:
    if isinstance(event, Mapping):
        return _of_mapping(event)
    if not isinstance(event, tuple | list) or len(event) not in (2, 3):
        raise DataError(f"event {event!r}: give (user, item) or (user, item, time), or a dictionary")
    row: dict[str, Any] = {"user": json_id(event[0]), "item": json_id(event[1])}
    if len(event) == 3 and event[2] is not None:
        row["timestamp"] = _time(event[2], event)
    return row


def _of_mapping(event: Mapping[str, Any]) -> dict[str, Any]:
    """A dictionary with the service's names; fields that are not known here are for the service to judge."""
    row = dict(event)
    for name, usual in _NAMES.items():
        given = [row.pop(one) for one in usual if one in row]
        if len(given) > 1 or (not given and name != "timestamp"):
            raise DataError(f"event {event!r}: give user, item and, unless it is now, timestamp, each once")
        if given and name != "timestamp":
            row[name] = json_id(given[0])
        elif given and given[0] is not None:
            row[name] = _time(given[0], event)
    return row


def _time(time: object, event: Event) -> float | str:
    if isinstance(time, date) and time == time:  # not pandas' NaT, which is a datetime too
        return time.isoformat()
    if isinstance(time, Real) and math.isfinite(time):
        return float(time)
    if isinstance(time, str):
        return time  # the service reads it
    raise DataError(f"event {event!r}: the time is not a number; give seconds since 1970 or a datetime")
