"""Which connections may stay: a bounded number in all, per address, and of those whose request waits for its client.

A connection *waits* while the next move is its client's: it is idle, sends a request, or does not read its answer. If
there are too many, the one that has waited longest has to go. So clients that are slow on purpose can take the place of
one another, but not that of a client that is on time, such as a health check.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from felrec.service.http.listening import is_local

PER_ADDRESS = 256  # as many as there may be requests in flight
RESERVE = 32  # connections above the limit, for clients that arrive while all others are being answered
SWEEP = 0.5  # seconds between two looks at who is late


@dataclass(frozen=True)
class ConnectionLimits:
    """How many connections there may be, and how long they may wait for their clients."""

    total: int = 1_000
    per_address: int | None = None  # None: 256, and any number from this machine, where a proxy may run
    incomplete_requests: int = 192  # bodies that are arriving and answers that are not being read
    incomplete_bytes: int = 48 * 2**20  # of the bodies that are arriving
    discarded_bytes: int = 32 * 2**20  # of a body whose answer is already sent; fewer would break honest clients
    keep_alive_seconds: float = 75.0  # longer than a proxy keeps a connection, so that it never uses a closed one
    head_seconds: float = 10.0  # for all headers of a request
    body_seconds: float = 10.0  # in which at least `body_bytes` of a body must arrive, or its end
    body_bytes: int = 64 * 2**10
    answer_seconds: float = 30.0  # in which a client must read some of its answer
    stop_seconds: float = 2.0  # the same while the service stops

    def of(self, origin: str) -> int:
        """How many connections of one origin there may be."""
        return self.per_address or (self.total + RESERVE if is_local(origin) else PER_ADDRESS)


DEFAULT_LIMITS = ConnectionLimits()


class Connection(Protocol):
    """What is asked of a connection."""

    origin: str

    def make_room(self) -> None:
        """Close at once, because the client has taken too long and others wait."""

    def close_when_answered(self) -> None:
        """Close after the answer that is being sent."""

    def check(self, now: float) -> None:
        """Close if the client is too slow."""


class Connections:
    """All connections of a service. `refused` is called with the status of each request refused here."""

    def __init__(self, limits: ConnectionLimits, refused: Callable[[int], None] = lambda _: None) -> None:
        self.limits, self.refused = limits, refused
        self._all: dict[Connection, None] = {}
        self._origins: Counter[str] = Counter()
        # Both in the order in which they began to wait.
        self._waiting: dict[Connection, None] = {}
        self._incomplete: dict[Connection, int] = {}  # those whose request has begun, and the bytes of its body so far
        self._bytes = 0
        self._next_sweep: asyncio.TimerHandle | None = None

    def admit(self, new: Connection) -> bool:
        """Add a connection, if need be in place of the one that has waited longest; False if there is no room."""
        if self._origins[new.origin] >= self.limits.of(new.origin):
            same = next((one for one in self._waiting if one.origin == new.origin), None)
            if same is None:
                return False
            same.make_room()
        if len(self._all) >= self.limits.total:
            self._make_room()
        if len(self._all) >= self.limits.total + RESERVE:
            return False
        if self._next_sweep is None:
            self._next_sweep = asyncio.get_running_loop().call_later(SWEEP, self._sweep)
        self._all[new] = None
        self._origins[new.origin] += 1
        return True

    def remove(self, gone: Connection) -> None:
        """Forget a connection, known or not."""
        if gone in self._all:
            del self._all[gone]
            self._origins[gone.origin] -= 1
            if not self._origins[gone.origin]:
                del self._origins[gone.origin]
        self.answers(gone)

    def waits(self, one: Connection, *, incomplete: bool = False) -> None:
        """From now on the connection waits for its client; `incomplete` if that holds up a request."""
        if one not in self._all:
            return
        self.answers(one)
        self._waiting[one] = None
        if incomplete:
            self._incomplete[one] = 0
            if len(self._incomplete) > self.limits.incomplete_requests:
                next(iter(self._incomplete)).make_room()

    def answers(self, one: Connection) -> None:
        """The connection does not wait for its client."""
        self._waiting.pop(one, None)
        self._bytes -= self._incomplete.pop(one, 0)

    def received(self, one: Connection, size: int) -> None:
        """Count bytes of a body that is arriving."""
        if one in self._incomplete:
            self._incomplete[one] += size
            self._bytes += size
            if self._bytes > self.limits.incomplete_bytes:
                next(iter(self._incomplete)).make_room()

    def _make_room(self) -> None:
        """If all are being answered, one of them closes afterwards, and the reserve is used until then."""
        if self._waiting:
            next(iter(self._waiting)).make_room()
            return
        first = next(iter(self._all))
        self._all[first] = self._all.pop(first)  # the next one to arrive asks another
        first.close_when_answered()

    def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        for one in list(self._all):
            one.check(loop.time())
        self._next_sweep = loop.call_later(SWEEP, self._sweep) if self._all else None


def origin_of(host: str) -> str:
    """What counts as one address: an IPv4 address, or the network of an IPv6 address, which has one owner.

    >>> origin_of("192.0.2.7"), origin_of("::ffff:192.0.2.7"), origin_of("2001:db8::7"), origin_of("::1")
    ('192.0.2.7', '192.0.2.7', '2001:db8::/64', '::1')
    """
    address = ipaddress.ip_address(host)
    if isinstance(address, ipaddress.IPv4Address) or address.is_loopback:
        return host
    return str(address.ipv4_mapped or ipaddress.ip_network((int(address), 64), strict=False))
