"""Access control, and access of routes to the service."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from anyio import CapacityLimiter
from fastapi import Request
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from felrec.service.engine.engine import Engine
from felrec.service.engine.types import Health
from felrec.service.http.audit import AuditLog
from felrec.service.http.keys import Key, KeyFile
from felrec.service.http.metrics import Metrics
from felrec.service.http.problems import Problem
from felrec.service.http.rates import RateLimits

PUBLIC = ("/", "/healthz", "/readyz", "/openapi.json")  # without personal data, like everything under /static/
READING = ("GET", "HEAD", "OPTIONS")
QUESTION = "/v1/recommendations"  # a POST that changes nothing


@dataclass
class Service:
    """The parts of a running service."""

    engine: Engine
    metrics: Metrics
    keys: KeyFile | None = None  # None: every client may do everything
    audit: AuditLog | None = None
    rates: RateLimits = field(default_factory=RateLimits)
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


def engine_of(request: Request) -> Engine:
    """The engine of the service that handles a request."""
    return service_of(request).engine


def key_of(scope: Scope) -> Key | None:
    """The key that a request was sent with; None if the path is public, or if the service has no keys."""
    key: Key | None = scope["state"].get("key")
    return key


class Guard:
    """Requires a key with the right scope for every path that is not public, if the service has keys."""

    def __init__(self, app: ASGIApp, keys: KeyFile | None, rates: RateLimits) -> None:
        self.app, self.keys, self.rates = app, keys, rates

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check the key, then pass the request on."""
        if scope["type"] == "http" and self.keys is not None and not is_public(scope["path"]):
            key = scope["state"]["key"] = self._checked(self.keys, scope)
            self.rates.check_request(key)
        await self.app(scope, receive, send)

    def _checked(self, keys: KeyFile, scope: Scope) -> Key:
        kind, _, secret = Headers(scope=scope).get("authorization", "").partition(" ")
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
