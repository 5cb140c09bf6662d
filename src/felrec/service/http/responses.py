"""Serialise answers as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from functools import cache
from typing import Any, get_args, get_type_hints

import msgspec
from starlette.responses import Response

from felrec.answers.types import LEFT_OUT, Answer

_ENCODER = msgspec.json.Encoder()


class JsonResponse(Response):
    """A response whose body is JSON already; Starlette's own constructor takes longer than writing the JSON."""

    def __init__(self, body: bytes, status: int, headers: Mapping[str, str]) -> None:
        self.status_code, self.body, self.background = status, body, None
        self.raw_headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
        self.raw_headers += [(b"content-length", b"%d" % len(body)), (b"content-type", b"application/json")]


def json_response(content: Answer, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A response with an answer as JSON in UTF-8."""
    return JsonResponse(_ENCODER.encode(_encodable(content)), status, headers or {})


def _encodable(answer: Answer) -> Answer | dict[str, Any]:
    """An answer without the optional fields that are not set, also not those of answers in it."""
    optional, nested = _shape(type(answer))  # type: ignore[arg-type]
    if not optional and not nested:
        return answer
    given = vars(answer).copy()
    for name in optional:
        if given[name] is None or given[name] is LEFT_OUT:
            del given[name]
    for name in nested & given.keys():
        given[name] = [_encodable(one) for one in given[name]]
    return given


@cache
def _shape(kind: type) -> tuple[tuple[str, ...], frozenset[str]]:
    """The fields that may be missing, and those that are lists of answers with such fields."""
    optional = tuple(one.name for one in fields(kind) if one.default is None or one.default_factory is not MISSING)
    entries = {name: get_args(hint)[:1] for name, hint in get_type_hints(kind).items()}
    nested = frozenset(name for name, entry in entries.items() if entry and _leaves_out(entry[0]))
    return optional, nested


def _leaves_out(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, Answer) and any(_shape(kind))  # type: ignore[arg-type]
