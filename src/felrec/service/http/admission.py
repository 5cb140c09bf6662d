"""Bounds what is in flight, so that an overloaded service refuses requests early and stays alive."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from starlette.types import Message, Receive, Scope

from felrec.service.http.access import needed_scope
from felrec.service.http.headers import header, retry_after
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


class Unlimited:
    """A request to a path without limits."""

    def __init__(self, receive: Receive) -> None:
        self.receive = receive

    def __enter__(self) -> Unlimited:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class Admitted:
    """A request that may be answered: `receive` counts the bytes of its body, and the end of the block its end."""

    def __init__(self, flying: InFlight, limits: Admission, receive: Receive) -> None:
        self._flying, self._limits, self._receive = flying, limits, receive
        self._bytes, self._whole = 0, False

    def __enter__(self) -> Admitted:
        self._flying.requests += 1
        return self

    def __exit__(self, *_: object) -> None:
        self._flying.requests -= 1
        self._flying.bytes -= self._bytes

    async def receive(self) -> Message:
        """The next part of the request. Raises Problem if the body is too long, or if its client has left."""
        message = await self._receive()
        if message["type"] == "http.disconnect" and not self._whole:
            raise Problem(499, "the connection was closed before the request was complete")  # only for the log
        self._whole = not message.get("more_body", False)
        size = len(message.get("body", b""))
        self._bytes += size
        self._flying.bytes += size
        self._limits.check_bytes(self._bytes, self._flying.bytes)
        return message


@dataclass
class Admission:
    """Refuses what is too much: too many requests or bytes in flight with 429, a too long body with 413.

    Every kind of request has its own limits. So slow bodies and writes that wait for the disk keep no read out.
    """

    max_requests: int
    max_body: int
    max_bytes: int  # total of all bodies in flight
    in_flight: dict[Kind, InFlight] = field(default_factory=lambda: defaultdict(InFlight))

    def admit(self, scope: Scope, receive: Receive) -> Admitted | Unlimited:
        """Count a request from now on; raises Problem if it is too much."""
        if scope["path"] in UNLIMITED:
            return Unlimited(receive)
        length = header(scope, b"content-length")
        if length.isdecimal() and int(length) > self.max_body:
            raise self._too_long()
        flying = self.in_flight[kind_of(scope)]
        if flying.requests >= self.max_requests:
            raise busy("too many concurrent requests")
        return Admitted(flying, self, receive)

    def check_bytes(self, of_body: int, in_flight: int) -> None:
        """Raise Problem if a body has too many bytes, or all bodies together."""
        if of_body > self.max_body:
            raise self._too_long()
        if in_flight > self.max_bytes:
            raise busy("too many bytes in flight")

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
