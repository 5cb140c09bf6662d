"""Bounds what is in flight, so that an overloaded service refuses requests early and stays alive."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from felrec.service.http.access import needed_scope
from felrec.service.http.middleware import header, retry_after
from felrec.service.http.problems import Problem

UNLIMITED = ("/healthz", "/readyz", "/metrics")  # an overloaded service must still report that it is alive
WITHOUT_BODY = ("GET", "HEAD", "OPTIONS", "DELETE")

Kind = tuple[str, bool]
"""Of a request: the scope that it needs, and whether it has a body."""


@dataclass
class InFlight:
    """The requests of one kind that are not answered yet."""

    requests: int = 0
    bytes: int = 0  # of their bodies


@dataclass
class Admission:
    """Refuses what is too much: too many requests or bytes in flight with 429, a too long body with 413.

    Every kind of request has its own limits. So slow bodies and writes that wait for the disk keep no read out.
    """

    app: ASGIApp
    max_requests: int
    max_body: int
    max_bytes: int  # total of all bodies in flight
    in_flight: dict[Kind, InFlight] = field(default_factory=lambda: defaultdict(InFlight))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http" or scope["path"] in UNLIMITED:
            await self.app(scope, receive, send)
            return
        self._check_length(header(scope, b"content-length"))
        flying = self.in_flight[kind_of(scope)]
        if flying.requests >= self.max_requests:
            raise busy("too many concurrent requests")
        flying.requests += 1
        taken, whole = 0, False

        async def counted() -> Message:
            nonlocal taken, whole
            message = await receive()
            if message["type"] == "http.disconnect" and not whole:
                raise Problem(499, "the connection was closed before the request was complete")  # only for the log
            whole = not message.get("more_body", False)
            size = len(message.get("body", b""))
            taken += size
            flying.bytes += size
            if taken > self.max_body:
                raise self._too_long()
            if flying.bytes > self.max_bytes:
                raise busy("too many bytes in flight")
            return message

        try:
            await self.app(scope, counted, send)
        finally:
            flying.requests -= 1
            flying.bytes -= taken

    def _check_length(self, length: str) -> None:
        if length.isdecimal() and int(length) > self.max_body:
            raise self._too_long()

    def _too_long(self) -> Problem:
        return Problem(413, f"the body is over {self.max_body:,} bytes; send fewer rows at a time")


def kind_of(scope: Scope) -> Kind:
    """The kind of a request, by its method and path.

    >>> kind_of({"method": "GET", "path": "/v1/stats"}), kind_of({"method": "PUT", "path": "/v1/items/a"})
    (('read', False), ('write', True))
    """
    return needed_scope(scope["method"], scope["path"]), scope["method"] not in WITHOUT_BODY


def busy(reason: str, seconds: float = 1.0) -> Problem:
    """429 for a request beyond a limit."""
    return Problem(429, f"{reason}; retry after the seconds in Retry-After", retry_after(seconds))
