"""The application: routes, middleware and error responses."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio.to_thread
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from felrec.answers.types import Refusal
from felrec.errors import (
    CapacityReached,
    FelrecError,
    InvalidRequest,
    KeyConflict,
    NotFound,
    Overloaded,
    Stopped,
    StoreError,
    StoreFull,
    StoreLost,
)
from felrec.service.engine.engine import Engine
from felrec.service.http import routes_events, routes_items_users, routes_page, routes_recommend, routes_status
from felrec.service.http.access import Guard, Service, is_public
from felrec.service.http.admission import UNLIMITED, Admission
from felrec.service.http.audit import AuditLog
from felrec.service.http.audit_entries import record_write
from felrec.service.http.keys import KeyFile
from felrec.service.http.logs import note
from felrec.service.http.metrics import Metrics
from felrec.service.http.middleware import (
    EncodedPaths,
    Envelope,
    HeadAsGet,
    Hosts,
    request_id,
    retry_after,
)
from felrec.service.http.problems import CAPACITY, CODES, Problem
from felrec.service.http.schemas import BODIES
from felrec.version import __version__

PAGE = Path(__file__).parent / "page"
MAX_BODY = 8 * 2**20
MAX_BODIES = 64 * 2**20  # total bytes of request bodies in flight, of each kind of request
MAX_REQUESTS = 256  # requests in flight, of each kind
READERS = max(4, 2 * (os.cpu_count() or 1))  # worker threads: more would only wait for each other
NEVER_OF_GET = ("400", "409", "413", "415", "507")  # errors that only requests with a body can get
DESCRIPTION = "Events in, recommendations out. Errors are `{error: {code, message, request_id}}`."


def create_app(
    engine: Engine,
    *,
    keys: KeyFile | None = None,
    hosts: frozenset[str] | None = Hosts.LOCAL,
    audit: AuditLog | None = None,
) -> FastAPI:
    """Create the service for an engine, which it closes when it stops, as it does the audit log.

    `hosts` are the host names it accepts, None for all. Without `keys` every client may do everything.
    """
    app = FastAPI(
        title="felrec",
        version=__version__,
        description=DESCRIPTION,
        docs_url=None,  # both load scripts from other sites
        redoc_url=None,
        redirect_slashes=False,  # behind a proxy it would redirect to the wrong address
        lifespan=_lifespan,
        responses={status: {"model": Refusal} for status in sorted(CODES)},
    )
    metrics = Metrics(lambda: service.health(), lambda: audit.dropped if audit else 0)
    service = Service(engine, metrics, keys, audit)
    app.state.service = service
    app.include_router(routes_recommend.often)  # first, because routes are searched in order
    for routes in (routes_events, routes_recommend, routes_items_users, routes_page, routes_status):
        app.include_router(routes.router)
    app.add_api_route("/", _page, include_in_schema=False)
    app.mount("/static", StaticFiles(directory=PAGE), name="static")
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(FelrecError, _failed)
    app.add_middleware(Guard, keys=keys, rates=service.rates)  # the last one added is the first to see a request
    app.add_middleware(EncodedPaths)
    app.add_middleware(Admission, max_requests=MAX_REQUESTS, max_body=MAX_BODY, max_bytes=MAX_BODIES)
    app.add_middleware(Hosts, allowed=hosts)
    app.add_middleware(Envelope, finished=lambda *finished: _finished(service, *finished))
    app.add_middleware(HeadAsGet)
    app.openapi = lambda: _described(app)  # type: ignore[method-assign]
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    _build_routes(app)
    anyio.to_thread.current_default_thread_limiter().total_tokens = READERS
    yield
    app.state.service.stopping = True
    await anyio.to_thread.run_sync(app.state.service.close)


def _build_routes(app: FastAPI) -> None:
    """Build all routes now. FastAPI does it when they are first matched, and then the first client waits."""
    for route in app.routes:
        route.matches({"type": "http", "method": "GET", "path": "/none", "headers": []})


async def _page() -> Response:
    return FileResponse(PAGE / "index.html")


def _finished(service: Service, scope: Scope, status: int, seconds: float) -> None:
    """Count, audit and log a request by its route, so that none of these contains ids of users."""
    route = getattr(scope.get("route"), "path", "none")
    if service.audit is not None and route != "none":
        record_write(service.audit, scope, route, status)
    service.metrics.finished(scope["method"], route, status, seconds)
    if scope["path"] not in UNLIMITED:
        fields = {"method": scope["method"], "route": route, "status": status}
        note("request", request_id=request_id(scope), **fields, milliseconds=round(seconds * 1e3, 2))


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if isinstance(error, Problem):
        return error.response(request_id(request.scope))
    message = {
        404: "not found; see /openapi.json for the paths",
        405: f"{request.method} is not allowed for this path",
    }.get(error.status_code, str(error.detail))
    return Problem(error.status_code, message, error.headers).response(request_id(request.scope))


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return Problem(422, "the body is not valid JSON").response(request_id(request.scope))
    where = ".".join(str(part) for part in first["loc"] if part not in ("body", "query", "path", "header"))
    return Problem(422, f"{where}: {first['msg']}" if where else first["msg"]).response(request_id(request.scope))


async def _failed(request: Request, error: Exception) -> Response:
    return _problem(error, request_id(request.scope)).response(request_id(request.scope))


def _problem(error: Exception, identifier: str) -> Problem:
    """Map an error of the engine to an HTTP response."""
    match error:
        case NotFound():
            return Problem(404, str(error))
        case InvalidRequest():
            return Problem(422, str(error))
        case KeyConflict():
            return Problem(409, str(error))
        case Overloaded():
            return Problem(429, str(error), retry_after(error.retry_after))
        case Stopped():
            return Problem(503, str(error), retry_after(5))
        case CapacityReached():
            return Problem(507, str(error), code=CAPACITY)
        case StoreFull():
            note("store full", level=40, request_id=identifier, reason=str(error))
            return Problem(507, "the store is full, so nothing was stored; recommendations still work", retry_after(30))
        case StoreLost():
            note("store lost", level=40, request_id=identifier, reason=str(error))
            message = "the files of the store were removed or replaced, so nothing was stored"
            return Problem(503, f"{message}; the operator must put them back, then restart", retry_after(30))
        case StoreError():
            note("store failed", level=40, exception=error, request_id=identifier)
            return Problem(503, "the store cannot be written right now, so nothing was stored", retry_after(30))
    note("unexpected error", level=40, exception=error, request_id=identifier)
    return Problem(500, "internal error; see the service log for this request id")


def _described(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document, with the schemas of bodies and the paths that need a key."""
    if app.openapi_schema is None:
        document = FastAPI.openapi(app)
        document["components"]["schemas"] |= {schema.__name__: schema.model_json_schema() for schema in BODIES}
        key = {"type": "http", "scheme": "bearer", "description": "needed if the service was started with --keys"}
        document["components"]["securitySchemes"] = {"key": key}
        for path, operations in document["paths"].items():
            for method, operation in operations.items():
                if not is_public(path):
                    operation["security"] = [{"key": []}]
                for status in NEVER_OF_GET if method == "get" else ():
                    del operation["responses"][status]
        app.openapi_schema = document
    return app.openapi_schema
