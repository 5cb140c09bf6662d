"""Serialise answers as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, fields
from functools import cache

from starlette.responses import Response

from felrec.answers.types import LEFT_OUT, Answer


def json_response(content: Answer, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A response with an answer as JSON in UTF-8."""
    return Response(_ENCODER.encode(content).encode(), status, dict(headers or {}), media_type="application/json")


def fields_of(answer: Answer) -> dict[str, object]:
    """The fields of an answer by name, without optional fields that are not set."""
    given = vars(answer)
    for name in _may_be_missing(type(answer)):  # type: ignore[arg-type]
        if given[name] is None or given[name] is LEFT_OUT:
            given = {**given}
            del given[name]
    return given


@cache
def _may_be_missing(kind: type) -> list[str]:
    return [one.name for one in fields(kind) if one.default is None or one.default_factory is not MISSING]


_ENCODER = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, separators=(",", ":"), default=fields_of
)
