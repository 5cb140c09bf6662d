"""Rate limits of API keys: requests and events a second."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from felrec.service.http.headers import retry_after
from felrec.service.http.keys import Key
from felrec.service.http.problems import Problem

ROUNDING = 1e-9  # of sums of floats: who waits exactly as long as told is not refused again


@dataclass
class TokenBucket:
    """A bucket that gets `rate` tokens a second and holds those of one second, at least one.

    As long as it holds one token, any number can be taken: what is missing becomes debt, which delays the next taker.
    So on average nobody takes more than `rate`, and a post that is larger than the bucket is possible at every rate.

    >>> bucket = TokenBucket(rate=2.0, now=0.0)
    >>> [bucket.take(1, now) for now in (0.0, 0.0, 0.0, 0.5)]
    [0.0, 0.0, 0.5, 0.0]
    >>> bucket.take(10, 1.0), bucket.take(1, 1.0), bucket.take(1, 6.0)
    (0.0, 5.0, 0.0)
    """

    rate: float
    now: float  # of the last call
    tokens: float = field(init=False)

    def __post_init__(self) -> None:
        self.tokens = self._capacity

    @property
    def _capacity(self) -> float:
        return max(1.0, self.rate)

    def take(self, count: int, now: float) -> float:
        """Take tokens and return 0.0, or take none and return the seconds until that is possible."""
        self.tokens = min(self._capacity, self.tokens + (now - self.now) * self.rate)
        self.now = now
        if self.tokens < 1 - ROUNDING:
            return (1 - self.tokens) / self.rate
        self.tokens -= count
        return 0.0


class RateLimits:
    """The buckets of all keys of a service. Only for its event loop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._buckets: dict[tuple[str, str, float], TokenBucket] = {}

    def check_request(self, key: Key) -> None:
        """Count a request; raise 429 if its key has sent too many."""
        self._take(key.id, "requests", key.requests_per_second, 1)

    def check_events(self, key: Key | None, count: int) -> None:
        """Count the rows of a post; raise 429 if its key has sent too many before. None: the service has no keys."""
        if key is not None:
            self._take(key.id, "events", key.events_per_second, count)

    def _take(self, identifier: str, what: str, rate: float | None, count: int) -> None:
        if rate is None:
            return
        now, name = self.clock(), (identifier, what, rate)  # a key whose rate was changed gets a new bucket
        bucket = self._buckets.setdefault(name, TokenBucket(rate, now))
        if wait := bucket.take(count, now):
            message = f"this API key may send {rate:g} {what} a second; retry after the seconds in Retry-After"
            raise Problem(429, message, retry_after(wait))
