"""When to try again: the service is busy (429), stopping (503) or out of reach. Every call can be repeated safely."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import httpx

from felrec.errors import ServiceError

AGAIN = (429, 503)


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


def checked(answer: httpx.Response) -> Any:
    """The JSON of a good answer; the service's own words as an error otherwise."""
    if answer.is_success:
        return answer.json() if answer.content else None
    try:
        error = answer.json()["error"]
        message, code, request = error["message"], error["code"], error["request_id"]
    except (ValueError, KeyError, TypeError):
        message, code, request = f"{answer.request.url} answered {answer.status_code}; is it felrec?", "unknown", ""
    raise ServiceError(message, answer.status_code, code, request)


def unreachable(error: httpx.TransportError, url: str) -> ServiceError:
    """What to say when there was no answer at all."""
    reason = str(error) or type(error).__name__
    return ServiceError(f"{url} does not answer ({reason}); is felrec serve running there?", 0, "unreachable", "")


def options(url: str, key: str | None, timeout: float) -> dict[str, Any]:
    """What both kinds of client tell httpx."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return {"base_url": url, "headers": headers, "timeout": timeout, "trust_env": False}
