"""Read request bodies: short ones at once, long ones in a thread, so that the event loop is not blocked."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from anyio.to_thread import run_sync
from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError

from felrec.service.http.access import needed_scope, service_of
from felrec.service.http.headers import header
from felrec.service.http.problems import Problem

LINES = ("application/x-ndjson", "application/jsonl")
LONG = 65_536  # bytes; a longer body is parsed in a thread

T = TypeVar("T")
Schema = TypeVar("Schema", bound=BaseModel)


async def parsed_body(request: Request, parse: Callable[[bytes], T]) -> T:
    """The body, parsed. Bodies of writes have a thread of their own, so that reads do not wait for them."""
    body = await request.body()
    if len(body) <= LONG:
        return parse(body)
    writing = needed_scope(request.method, request.scope["path"]) == "write"
    return await run_sync(parse, body, limiter=service_of(request).write_parser if writing else None)


async def json_body(request: Request, schema: type[Schema]) -> Schema:
    """The body as an instance of a schema. Refuses other content types: a page of another site could send those."""
    if media_type(request) != "application/json":
        raise Problem(415, "send the body as Content-Type: application/json")
    try:
        return await parsed_body(request, schema.model_validate_json)
    except ValidationError as error:
        raise RequestValidationError(error.errors(include_url=False, include_input=False)) from None


def media_type(request: Request) -> str:
    """The content type without its parameters. Refuses compressed bodies, which are not supported."""
    encoding = header(request.scope, b"content-encoding", None)
    if encoding is not None and encoding != "identity":
        raise Problem(415, f"send the body uncompressed, without Content-Encoding: {encoding[:40]}")
    return header(request.scope, b"content-type").partition(";")[0].strip().lower()


def sent_as_lines(request: Request, what: str) -> bool:
    """Whether a body has one JSON value per line. Refuses other content types than JSON."""
    kind = media_type(request)
    if kind != "application/json" and kind not in LINES:
        raise Problem(415, f"send {what} as Content-Type: application/json, or application/x-ndjson for one per line")
    return kind in LINES
