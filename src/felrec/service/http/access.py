"""Access control, and access of routes to the service."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import TypeVar

from anyio import CapacityLimiter
from fastapi import Request
from starlette.types import Scope

from felrec.data.kinds import KindTable
from felrec.service.engine.cluster.member import AnyEngine
from felrec.service.engine.types import Health
from felrec.service.http.audit import AuditLog
from felrec.service.http.completions import Completions
from felrec.service.http.headers import header
from felrec.service.http.keys import Key, KeyFile
from felrec.service.http.metrics import Metrics
from felrec.service.http.problems import Problem
from felrec.service.http.rates import RateLimits

PUBLIC = ("/", "/docs", "/healthz", "/readyz", "/openapi.json")  # without personal data, like everything under /static/
READING = ("GET", "HEAD", "OPTIONS")
T = TypeVar("T")
QUESTION = "/v1/recommendations"  # a POST that changes nothing


@dataclass
class Service:
    """The parts of a running service."""

    engine: AnyEngine
    metrics: Metrics
    keys: KeyFile | None = None  # None: every client may do everything
    audit: AuditLog | None = None
    kinds: KindTable | None = None  # what kinds of events mean
    rates: RateLimits = field(default_factory=RateLimits)
    completions: Completions = field(default_factory=Completions)
    stopping: bool = False
    write_parser: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(1))  # of threads for long bodies

    def close(self) -> None:
        """Close the engine, then the audit log."""
        self.engine.close()
        if self.audit is not None:
            self.audit.close()

    def health(self) -> Health:
        """The engine's health; a stopping service is not ready."""
        health = self.engine.health()
        return replace(health, ready=False, unready="shutting down") if self.stopping else health


def service_of(request: Request) -> Service:
    """The service that handles a request. Not a FastAPI dependency, because those are slow."""
    service: Service = request.app.state.service
    return service


def engine_of(request: Request) -> AnyEngine:
    """The engine of the service that handles a request."""
    return service_of(request).engine


async def result_of(request: Request, future: Future[T]) -> T:
    """The result of work that a thread of the engine does, without a thread that waits for it."""
    return await service_of(request).completions.result(future)


def key_of(scope: Scope) -> Key | None:
    """The key that a request was sent with; None if the path is public, or if the service has no keys."""
    key: Key | None = scope["state"].get("key")
    return key


class Guard:
    """Requires a key with the right scope for every path that is not public, if the service has keys."""

    def __init__(self, keys: KeyFile | None, rates: RateLimits) -> None:
        self.keys, self.rates = keys, rates

    def check(self, scope: Scope) -> None:
        """Raise Problem if a request may not be answered."""
        if self.keys is not None and not is_public(scope["path"]):
            key = scope["state"]["key"] = self._checked(self.keys, scope)
            self.rates.check_request(key)

    def _checked(self, keys: KeyFile, scope: Scope) -> Key:
        kind, _, secret = header(scope, b"authorization").partition(" ")
        key = keys.find(secret.strip()) if kind.lower() == "bearer" else None
        if key is None:
            missing = "unknown API key" if secret else "an API key is required"
            advice = "send a valid key as Authorization: Bearer KEY; create one with felrec keys add"
            raise Problem(401, f"{missing}; {advice}", {"www-authenticate": "Bearer"})
        needed = needed_scope(scope["method"], scope["path"])
        if needed not in key.scopes:
            raise Problem(403, f"this API key cannot {needed}; create one with felrec keys add --scope {needed}")
        return key


def is_public(path: str) -> bool:
    """Whether a path needs no key."""
    return path in PUBLIC or path.startswith("/static/")


def needed_scope(method: str, path: str) -> str:
    """The scope that a key needs: read for requests that change nothing, else write.

    >>> needed_scope("GET", "/v1/stats"), needed_scope("DELETE", "/v1/users/ada")
    ('read', 'write')
    """
    return "read" if method in READING or path == QUESTION else "write"
