"""ASGI middleware of every request: request ids, headers, limits and error handling.

From the outside in: `Envelope` (request id, security headers, log line, metrics, no tracebacks to clients), `Hosts`
(against DNS rebinding), `Admission` (bounds requests and bytes in flight; in admission.py), `EncodedPaths` (ids may
contain a slash).
"""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Awaitable, Callable
from urllib.parse import quote

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from felrec.service.http.listening import is_local
from felrec.service.http.logs import note
from felrec.service.http.problems import Problem

REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
PORT = re.compile(r":\d*$")
PAGE_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    b"font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
DATA_POLICY = b"default-src 'none'; frame-ancestors 'none'"
SECURITY_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)
PAGE_HEADERS = (*SECURITY_HEADERS, (b"content-security-policy", PAGE_POLICY))
DATA_HEADERS = (*SECURITY_HEADERS, (b"content-security-policy", DATA_POLICY))

Finished = Callable[[Scope, int, float], None]
"""Called after each request with its scope, its status and its duration in seconds."""


def request_id(scope: Scope) -> str:
    """The id of a request in its log line and its answer."""
    return str(scope["state"]["request_id"])


def header(scope: Scope, name: bytes) -> str:
    """The first header with this lower-case name, empty if missing."""
    for key, value in scope["headers"]:
        if key == name:
            return str(value, "latin-1")
    return ""


class HeadAsGet:
    """Answers HEAD like GET; the server omits the body."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await self.app({**scope, "method": "GET"} if scope.get("method") == "HEAD" else scope, receive, send)


class Envelope:
    """Adds a request id and headers, turns failures into error responses, and reports finished requests."""

    def __init__(self, app: ASGIApp, finished: Finished) -> None:
        self.app, self.finished = app, finished

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        given = header(scope, b"x-request-id")
        identifier = given if REQUEST_ID.fullmatch(given) else os.urandom(16).hex()
        scope.setdefault("state", {})["request_id"] = identifier
        began, status = time.perf_counter(), 0

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                _add_headers(message["headers"], identifier)
            await send(message)

        try:
            await self.app(scope, receive, send_with_headers)
        except Problem as problem:
            if status == 0:
                await problem.response(identifier)(scope, receive, send_with_headers)
        except Exception as error:
            note("unexpected error", level=40, exception=error, request_id=identifier)
            if status == 0:
                internal = Problem(500, "internal error; see the service log for this request id")
                await internal.response(identifier)(scope, receive, send_with_headers)
        finally:
            self.finished(scope, status or 499, time.perf_counter() - began)


def _add_headers(headers: list[tuple[bytes, bytes]], identifier: str) -> None:
    """Add the headers of every answer; of these, routes may only set cache-control."""
    there = dict(headers)
    page = not there.get(b"content-type", b"").startswith(b"application/json")
    headers += PAGE_HEADERS if page else DATA_HEADERS
    headers.append((b"x-request-id", identifier.encode()))
    if b"cache-control" not in there:
        headers.append((b"cache-control", b"no-cache" if page else b"no-store"))


class Hosts:
    """Refuses foreign host names, so that no web page can reach a loopback service through its own domain."""

    LOCAL = frozenset({"localhost", "127.0.0.1", "[::1]"})

    def __init__(self, app: ASGIApp, allowed: frozenset[str] | None) -> None:
        self.app, self.allowed = app, allowed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "http" and self.allowed is not None:
            name = PORT.sub("", header(scope, b"host").lower())
            if name not in self.allowed and not is_local(name):
                raise Problem(421, "this service only accepts the host localhost; behind a proxy start it with --keys")
        await self.app(scope, receive, send)


def retry_after(seconds: float) -> dict[str, str]:
    """The header Retry-After in whole seconds, at least one; never too early, or the client would be refused again."""
    return {"retry-after": str(max(1, math.ceil(round(seconds, 3))))}


class EncodedPaths:
    """Routes by the percent-encoded path, so that an id may contain a slash (`%2F`)."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Answer one request."""
        if scope["type"] == "http" and scope.get("raw_path"):
            scope["path"] = quote(scope["raw_path"].partition(b"?")[0], safe="/%:@!$&'()*+,;=~")
        return self.app(scope, receive, send)
