"""When to try again: the service is busy (429), stopping (503), or neither it nor its proxy answers.

Every call can be repeated safely: posts have a key, and deleting what an earlier attempt deleted is not an error.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import httpx

from felrec.client.calls import Call
from felrec.errors import ConfigError, DataError, ServiceError

AGAIN = (429, 502, 503, 504)
A = TypeVar("A")


@dataclass(frozen=True)
class Retries:
    """How many retries, and the longest wait before each."""

    times: int = 4
    longest: float = 30.0

    def wait(self, attempt: int, answer: httpx.Response | None) -> float | None:
        """Seconds until the next attempt: what Retry-After says, else twice as long each time; None to give up."""
        if attempt >= self.times or (answer is not None and answer.status_code not in AGAIN):
            return None
        told = answer.headers.get("retry-after", "") if answer is not None else ""
        seconds = float(told) if told.isdecimal() else 0.1 * 2**attempt
        return min(self.longest, seconds) * random.uniform(1.0, 1.25)  # so that clients do not retry all at once


def perhaps_done(answer: httpx.Response | None) -> bool:
    """Whether the service may have done what was asked although no answer came back."""
    return answer is None or answer.status_code in (502, 504)


class Attempts(Generic[A]):
    """The attempts at one call. The client waits, sends the request and keeps the answer here, until none is left."""

    def __init__(self, call: Call[A], retries: Retries, url: str) -> None:
        self.call, self.retries, self.url = call, retries, url
        self.answer: httpx.Response | None = None
        self._error: httpx.TransportError | None = None
        self._perhaps_done = False  # by an attempt before the last one

    def __iter__(self) -> Iterator[float]:
        """Seconds to wait before each attempt."""
        yield 0.0
        attempt = 0
        while (wait := self.retries.wait(attempt, self.answer)) is not None:
            attempt, self._perhaps_done = attempt + 1, self._perhaps_done or perhaps_done(self.answer)
            yield wait

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Keep the error of an attempt without an answer; raise one that no retry can fix."""
        self.answer = None
        try:
            yield
        except httpx.InvalidURL as error:
            raise DataError(
                f"the address of this request cannot be sent ({error}); give fewer or shorter candidates"
            ) from None
        except httpx.TransportError as error:
            self._error = error

    def result(self) -> A:
        """What a good answer says; an error in the service's own words otherwise."""
        answer = self.answer
        if answer is None:
            reason = str(self._error) or type(self._error).__name__
            message = f"{self.url} does not answer ({reason}); is felrec serve running there?"
            raise ServiceError(message, 0, "unreachable", "")
        if answer.status_code == 404 and self._perhaps_done and self.call.gone:
            return self.call.gone()
        try:
            if answer.is_success:
                return self.call.read(answer.json() if answer.content else None)
            error = answer.json()["error"]
            message, code, request = error["message"], error["code"], error["request_id"]
        except (ValueError, KeyError, TypeError):
            message, code, request = f"{answer.request.url} answered {answer.status_code}; is it felrec?", "unknown", ""
        raise ServiceError(message, answer.status_code, code, request)


def options(url: str, key: str | None, timeout: float) -> dict[str, Any]:
    """The arguments of both kinds of httpx client."""
    if not url.startswith(("http://", "https://")):
        raise ConfigError(f"{url!r} is no address of a service; give one such as http://127.0.0.1:8000")
    key = (key or "").strip()
    if not (key.isascii() and key.isprintable()):  # not shown: it is a secret
        raise ConfigError("the key has characters that no key of felrec has; copy it again")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return {"base_url": url, "headers": headers, "timeout": timeout, "trust_env": False}
