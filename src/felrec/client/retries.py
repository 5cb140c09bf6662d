"""When to try again: the service is busy (429), stopping (503), or neither it nor its proxy answers.

Every call can be repeated safely: posts have a key, and to delete what an attempt before has deleted is no error.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx

from felrec.client.calls import Call
from felrec.errors import ConfigError, DataError, ServiceError

AGAIN = (429, 502, 503, 504)
A = TypeVar("A")


@dataclass(frozen=True)
class Retries:
    """How often, and how long to wait at most before each."""

    times: int = 4
    longest: float = 30.0

    def wait(self, attempt: int, answer: httpx.Response | None) -> float | None:
        """Seconds until the next attempt: what Retry-After says, else twice as long each time; None to give up."""
        if attempt >= self.times or (answer is not None and answer.status_code not in AGAIN):
            return None
        told = answer.headers.get("retry-after", "") if answer is not None else ""
        seconds = float(told) if told.isdecimal() else 0.1 * 2**attempt
        return min(self.longest, seconds) * random.uniform(1.0, 1.25)  # not all clients in the same moment


def perhaps_done(answer: httpx.Response | None) -> bool:
    """Whether the service may have done what was asked, though its answer did not come."""
    return answer is None or answer.status_code in (502, 504)


def read(call: Call[A], answer: httpx.Response, perhaps: bool) -> A:
    """What a good answer says; the service's own words as an error otherwise.

    `perhaps` says that an attempt before may have done it already: then nothing is left to delete.
    """
    if answer.status_code == 404 and perhaps and call.gone:
        return call.gone()
    try:
        if answer.is_success:
            return call.read(answer.json() if answer.content else None)
        error = answer.json()["error"]
        message, code, request = error["message"], error["code"], error["request_id"]
    except (ValueError, KeyError, TypeError):
        message, code, request = f"{answer.request.url} answered {answer.status_code}; is it felrec?", "unknown", ""
    raise ServiceError(message, answer.status_code, code, request)


def too_long(error: httpx.InvalidURL) -> DataError:
    """What to say when a request cannot even be written down."""
    return DataError(f"the address of this request cannot be sent ({error}); give fewer or shorter candidates")


def unreachable(error: httpx.TransportError, url: str) -> ServiceError:
    """What to say when there was no answer at all."""
    reason = str(error) or type(error).__name__
    return ServiceError(f"{url} does not answer ({reason}); is felrec serve running there?", 0, "unreachable", "")


def options(url: str, key: str | None, timeout: float) -> dict[str, Any]:
    """What both kinds of client tell httpx."""
    if not url.startswith(("http://", "https://")):
        raise ConfigError(f"{url!r} is no address of a service; give one such as http://127.0.0.1:8000")
    key = (key or "").strip()
    if not (key.isascii() and key.isprintable()):  # not shown: it is a secret
        raise ConfigError("the key has characters that no key of felrec has; copy it again")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return {"base_url": url, "headers": headers, "timeout": timeout, "trust_env": False}
