"""The rows of a body: one JSON object, a list of them, or one per line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

from felrec.service.engine.limits import Limits
from felrec.service.http.problems import Problem

LIMITS = Limits()
_NOT_JSON = "not valid JSON in UTF-8"


class BadLine(NamedTuple):
    """A line that is not JSON, in the place of its row."""

    reason: str


def rows_of(body: bytes, lines: bool) -> Iterator[tuple[int, Any]]:
    r"""The rows with their numbers from 0, in lines those of the lines; raises Problem if there are too many.

    >>> list(rows_of(b'{"user": 1}', lines=False)), [number for number, _ in rows_of(b'7\n\n8', lines=True)]
    ([(0, {'user': 1})], [0, 2])
    """
    for count, row in enumerate(_lines(body) if lines else enumerate(_values(body))):
        if count == LIMITS.submission:
            raise Problem(413, f"more than {LIMITS.submission:,} rows; send them in several requests")
        yield row


def as_object(row: object, advice: str) -> dict[str, Any]:
    """A row that is a JSON object; ValueError says why another one is rejected."""
    if isinstance(row, BadLine):
        raise ValueError(row.reason)
    if not isinstance(row, dict):
        raise ValueError(advice)
    return row


def _lines(body: bytes) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(body.split(b"\n")):
        if line.strip():
            try:
                yield number, _parse(line)
            except ValueError:
                yield number, BadLine(_NOT_JSON)


def _values(body: bytes) -> list[Any]:
    try:
        value = _parse(body)
    except ValueError:
        raise Problem(422, f"the body is {_NOT_JSON}") from None
    return value if isinstance(value, list) else [value]


def _parse(text: bytes) -> Any:
    try:
        return json.loads(text.decode(), parse_constant=_refuse)
    except RecursionError:  # ValueError: also for bytes that are not UTF-8, and for numbers with thousands of digits
        raise ValueError from None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
