"""The application: routes, and the gate before them."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread
from fastapi import FastAPI, Response
from starlette.responses import FileResponse
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from felrec.answers.types import Refusal
from felrec.data.kinds import KindTable
from felrec.service.engine.cluster.member import AnyEngine
from felrec.service.http import (
    routes_events,
    routes_feedback,
    routes_items_users,
    routes_page,
    routes_recommend,
    routes_status,
)
from felrec.service.http.access import Guard, Service, is_public
from felrec.service.http.admission import UNLIMITED, Admission
from felrec.service.http.audit import AuditLog
from felrec.service.http.audit_entries import record_write
from felrec.service.http.fast_route import FrequentRoutes
from felrec.service.http.gate import Gate
from felrec.service.http.headers import LOCAL, request_id
from felrec.service.http.keys import KeyFile
from felrec.service.http.logs import note
from felrec.service.http.metrics import Metrics
from felrec.service.http.problems import CODES
from felrec.service.http.refusals import EXPECTED, refuse
from felrec.service.http.schemas import BODIES
from felrec.version import __version__

PAGE = Path(__file__).parent / "page"
MAX_BODY = 8 * 2**20
MAX_BODIES = 64 * 2**20  # total bytes of request bodies in flight, of each kind of request
MAX_REQUESTS = 256  # requests in flight, of each kind
READERS = max(4, 2 * (os.cpu_count() or 1))  # worker threads: more would only wait for each other
NEVER_OF_GET = ("400", "409", "413", "415", "507")  # errors that only requests with a body can get
NO_TELEMETRY: Any = {"tracing": False, "metrics": False, "logs": False}  # its spans would contain ids of users
DESCRIPTION = "Events in, recommendations out. Errors are `{error: {code, message, request_id}}`."


def create_app(
    engine: AnyEngine,
    *,
    keys: KeyFile | None = None,
    hosts: frozenset[str] | None = LOCAL,
    audit: AuditLog | None = None,
    ab_trending: float = 0.0,
    kinds: KindTable | None = None,
) -> FastAPI:
    """Create the service for an engine, which it closes when it stops, as it does the audit log.

    `hosts` are the host names it accepts, None for all. Without `keys` every client may do everything. A share
    `ab_trending` of the users gets trending items, to compare with. `kinds` says what kinds of events mean.
    """
    engine.feedback.test(ab_trending)
    app = FastAPI(
        title="felrec",
        version=__version__,
        description=DESCRIPTION,
        docs_url=None,  # both load scripts from other sites; /docs has its own page
        redoc_url=None,
        redirect_slashes=False,  # behind a proxy it would redirect to the wrong address
        lifespan=_lifespan,
        telemetry=NO_TELEMETRY,
        responses={status: {"model": Refusal} for status in sorted(CODES)},
    )
    metrics = Metrics(lambda: service.health(), lambda: audit.dropped if audit else 0, engine.feedback.counts)
    service = Service(engine, metrics, keys, audit, kinds)
    app.state.service = service
    frequent = (routes_recommend.frequent, routes_events.router, routes_feedback.router, routes_status.frequent)
    others = (routes_recommend.router, routes_items_users.router, routes_page.router, routes_status.router)
    for router in (*frequent, *others):
        app.include_router(router)
    app.add_api_route("/", _page, include_in_schema=False)
    app.add_api_route("/docs", _docs, include_in_schema=False)
    app.mount("/static", StaticFiles(directory=PAGE), name="static")
    for kind in EXPECTED:
        app.add_exception_handler(kind, refuse)
    app.state.admission = Admission(MAX_REQUESTS, MAX_BODY, MAX_BODIES)
    app.add_middleware(
        Gate,
        hosts=hosts,
        admission=app.state.admission,
        guard=Guard(keys, service.rates),
        frequent=FrequentRoutes(route for router in frequent for route in router.routes),
        finished=partial(_finished, service),
        age=lambda: service.engine.age,
    )
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


async def _docs() -> Response:
    return FileResponse(PAGE / "docs.html")


def _finished(service: Service, scope: Scope, status: int, seconds: float) -> None:
    """Count, audit and log a request by its route, so that none of these contains ids of users."""
    route = getattr(scope.get("route"), "path", "none")
    if service.audit is not None and route != "none":
        record_write(service.audit, scope, route, status)
    service.metrics.finished(scope["method"], route, status, seconds)
    if scope["path"] not in UNLIMITED:
        fields = {"method": scope["method"], "route": route, "status": status}
        note("request", request_id=request_id(scope), **fields, milliseconds=round(seconds * 1e3, 2))


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
