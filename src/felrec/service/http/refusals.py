"""The answer to a request that failed, whatever the reason."""

from __future__ import annotations

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.types import Scope

from felrec.errors import (
    CapacityReached,
    FelrecError,
    InvalidRequest,
    KeyConflict,
    NotFound,
    Overloaded,
    Stopped,
    StoreBusy,
    StoreError,
    StoreFull,
    StoreLost,
    StoreUnreachable,
    Unanswered,
)
from felrec.service.http.headers import request_id, retry_after
from felrec.service.http.logs import note
from felrec.service.http.problems import CAPACITY, Problem

EXPECTED = (HTTPException, RequestValidationError, FelrecError)  # errors that a route may raise


def refusal(error: Exception, scope: Scope) -> Response:
    """The response to a request that ended with an error; the log has what the client must not see."""
    identifier = request_id(scope)
    return _problem(error, scope, identifier).response(identifier)


async def refuse(request: Request, error: Exception) -> Response:
    """The same as a handler of FastAPI."""
    return refusal(error, request.scope)


def _problem(error: Exception, scope: Scope, identifier: str) -> Problem:
    match error:
        case Problem():
            return error
        case HTTPException():
            message = {
                404: "not found; see /openapi.json for the paths",
                405: f"{scope['method']} is not allowed for this path",
            }.get(error.status_code, str(error.detail))
            return Problem(error.status_code, message, error.headers)
        case RequestValidationError():
            return _invalid(error)
        case StoreError():
            return _not_stored(error, identifier)
        case NotFound():
            return Problem(404, str(error))
        case InvalidRequest():
            return Problem(422, str(error))
        case KeyConflict():
            return Problem(409, str(error))
        case Overloaded():
            return Problem(429, str(error), retry_after(error.retry_after))
        case Unanswered():
            return Problem(503, str(error), retry_after(error.retry_after))
        case Stopped():
            return Problem(503, str(error), retry_after(5))
        case CapacityReached():
            return Problem(507, str(error), code=CAPACITY)
    note("unexpected error", level=40, exception=error, request_id=identifier)
    return Problem(500, "internal error; see the service log for this request id")


def _invalid(error: RequestValidationError) -> Problem:
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return Problem(422, "the body is not valid JSON")
    where = ".".join(str(part) for part in first["loc"] if part not in ("body", "query", "path", "header"))
    return Problem(422, f"{where}: {first['msg']}" if where else first["msg"])


def _not_stored(error: StoreError, identifier: str) -> Problem:
    match error:
        case StoreFull():
            note("store full", level=40, request_id=identifier, reason=str(error))
            return Problem(507, "the store is full, so nothing was stored; recommendations still work", retry_after(30))
        case StoreLost():
            note("store lost", level=40, request_id=identifier, reason=str(error))
            message = "the files of the store were removed or replaced, so nothing was stored"
            return Problem(503, f"{message}; the operator must put them back, then restart", retry_after(30))
        case StoreBusy():
            note("store busy", level=30, request_id=identifier, reason=str(error))
            return Problem(503, "another process is writing to the store, so nothing was stored", retry_after(1))
        case StoreUnreachable():
            note("store unreachable", level=40, request_id=identifier, reason=str(error))
            message = "the store cannot be reached, so this may be stored or not; recommendations still work"
            return Problem(503, f"{message}; a retry with the same Idempotency-Key is safe", retry_after(5))
    note("store failed", level=40, exception=error, request_id=identifier)
    return Problem(503, "the store cannot be written right now, so nothing was stored", retry_after(30))
