"""Headers of requests and answers: request ids, host names, security headers."""

from __future__ import annotations

import math
import random
import re
from typing import overload

from starlette.types import Scope

from felrec.service.http.listening import is_local
from felrec.service.http.problems import Problem

REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
PORT = re.compile(r":\d*$")
LOCAL = frozenset({"localhost", "127.0.0.1", "[::1]"})  # host names of this machine
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


@overload
def header(scope: Scope, name: bytes) -> str: ...
@overload
def header(scope: Scope, name: bytes, default: None) -> str | None: ...
def header(scope: Scope, name: bytes, default: str | None = "") -> str | None:
    """The first header with this lower-case name, `default` if there is none."""
    for key, value in scope["headers"]:
        if key == name:
            return str(value, "latin-1")
    return default


def new_request_id() -> str:
    """An id that no other request has. It need not be secret, and the system's source of randomness is slower."""
    return f"{random.getrandbits(128):032x}"


def chosen_request_id(scope: Scope) -> str:
    """The id that the client gave, if it is one, or a new one."""
    given = header(scope, b"x-request-id")
    return given if given and REQUEST_ID.fullmatch(given) else new_request_id()


def request_id(scope: Scope) -> str:
    """The id of a request in its log line and its answer."""
    return str(scope["state"]["request_id"])


def add_headers(headers: list[tuple[bytes, bytes]], identifier: str, age: float | None) -> None:
    """Add the headers of every answer; of these, routes may only set cache-control."""
    there = dict(headers)
    page = not there.get(b"content-type", b"").startswith(b"application/json")
    headers += PAGE_HEADERS if page else DATA_HEADERS
    headers.append((b"x-request-id", identifier.encode()))
    if age is not None:
        headers.append((b"felrec-age-ms", b"%d" % (1_000 * age)))
    if b"cache-control" not in there:
        headers.append((b"cache-control", b"no-cache" if page else b"no-store"))


def check_host(scope: Scope, allowed: frozenset[str] | None) -> None:
    """Refuse foreign host names, so that no web page can reach a loopback service through its own domain."""
    if allowed is None:
        return
    name = PORT.sub("", header(scope, b"host").lower())
    if name not in allowed and not is_local(name):
        raise Problem(421, "this service only accepts the host localhost; behind a proxy start it with --keys")


def retry_after(seconds: float) -> dict[str, str]:
    """The header Retry-After in whole seconds, at least one; never too early, or the client would be refused again."""
    return {"retry-after": str(max(1, math.ceil(round(seconds, 3))))}
