"""Who may do what, and how a route gets at the service."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fastapi import Request
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from felrec.service.engine.engine import Engine
from felrec.service.engine.types import Health
from felrec.service.http.keys import KeyFile
from felrec.service.http.metrics import Metrics
from felrec.service.http.problems import Problem

PUBLIC = ("/", "/healthz", "/readyz", "/openapi.json")  # no data of anybody; nor is there any under /static/
READING = ("GET", "HEAD", "OPTIONS")
QUESTION = "/v1/recommendations"  # a POST that changes nothing


@dataclass
class Service:
    """What one running service consists of."""

    engine: Engine
    metrics: Metrics
    keys: KeyFile | None = None  # None: all who can reach it may do everything
    stopping: bool = False

    def health(self) -> Health:
        """That of the engine; a service that stops is not ready."""
        health = self.engine.health()
        return replace(health, ready=False) if self.stopping else health


def service_of(request: Request) -> Service:
    """The service that took a request. No dependency of FastAPI: those cost more than they give here."""
    service: Service = request.app.state.service
    return service


def engine_of(request: Request) -> Engine:
    """The engine of the service that took a request."""
    return service_of(request).engine


class Guard:
    """Requires a key with the right scope for every path that is not public, if there are keys."""

    def __init__(self, app: ASGIApp, keys: KeyFile | None) -> None:
        self.app, self.keys = app, keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "http" and self.keys is not None and not is_public(scope["path"]):
            self._check(self.keys, scope)
        await self.app(scope, receive, send)

    def _check(self, keys: KeyFile, scope: Scope) -> None:
        kind, _, secret = Headers(scope=scope).get("authorization", "").partition(" ")
        allowed = keys.scopes_of(secret.strip()) if kind.lower() == "bearer" else None
        if allowed is None:
            missing = "this key is not known" if secret else "a key is needed"
            advice = "give a valid one as Authorization: Bearer KEY; felrec keys add makes one"
            raise Problem(401, f"{missing}; {advice}", {"www-authenticate": "Bearer"})
        needed = needed_scope(scope["method"], scope["path"])
        if needed not in allowed:
            raise Problem(403, f"this key may not {needed}; make one with felrec keys add --scope {needed}")


def is_public(path: str) -> bool:
    """Whether a path needs no key."""
    return path in PUBLIC or path.startswith("/static/")


def needed_scope(method: str, path: str) -> str:
    """What a key must allow: to read, for what changes nothing, else to write.

    >>> needed_scope("GET", "/v1/stats"), needed_scope("DELETE", "/v1/users/ada")
    ('read', 'write')
    """
    return "read" if method in READING or path == QUESTION else "write"


async def json_only(request: Request) -> None:
    """Refuse bodies that do not say they are JSON: such a request could come from a page of another site."""
    if media_type(request) != "application/json":
        raise Problem(415, "send the body as Content-Type: application/json")


def media_type(request: Request) -> str:
    """The content type without its parameters. Bodies that are packed are refused: they would be read as they are."""
    if (packed := request.headers.get("content-encoding", "identity")) != "identity":
        raise Problem(415, f"send the body as it is, not as Content-Encoding: {packed[:40]}")
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()
