"""What the audit log records of a request."""

from __future__ import annotations

from urllib.parse import unquote

from fastapi import Request
from starlette.types import Scope

from felrec.service.engine.types import Side
from felrec.service.http.access import key_of, needed_scope
from felrec.service.http.audit import AuditLog

SIDES: dict[str, Side] = {"/v1/users/{id}": "user", "/v1/items/{id}": "item"}  # whose ids are in the path


def record_write(audit: AuditLog, scope: Scope, route: str, status: int) -> None:
    """Record a request in the audit log, if it reached a route that writes."""
    if needed_scope(scope["method"], scope["path"]) != "write":
        return
    key, state, side = key_of(scope), scope["state"], SIDES.get(route)
    whose = {side: audit.digests.of(side, unquote(scope["path_params"]["id"]))} if side else {}
    audit.record(
        key=key and key.id,
        name=key and key.name,
        method=scope["method"],
        route=route,
        **whose,
        **state.get("rows", {}),
        status=status,
        request_id=state["request_id"],
    )


def count_rows(request: Request, **rows: int) -> None:
    """Say how many rows a request changed, for the audit log."""
    request.state.rows = rows
