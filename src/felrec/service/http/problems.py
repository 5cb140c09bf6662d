"""Error responses: `{"error": {"code", "message", "request_id"}}`, never a traceback."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from starlette.exceptions import HTTPException
from starlette.responses import Response

from felrec.answers.types import Error, Refusal, Rejected
from felrec.service.http.responses import json_response

CODES = {
    400: "bad_request",
    401: "unauthorised",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    408: "too_slow",
    409: "conflict",
    413: "too_large",
    415: "unsupported_media_type",
    421: "wrong_host",
    422: "invalid",
    429: "overloaded",
    431: "headers_too_large",
    500: "internal",
    501: "not_supported",
    503: "unavailable",
    507: "store_full",
}

CAPACITY = "capacity_reached"  # like store_full with status 507, but no free space on the disk helps


class Problem(HTTPException):
    """An error with a status and a message; for a post of events also the rejected rows."""

    def __init__(
        self,
        status: int,
        message: str,
        headers: Mapping[str, str] | None = None,
        accepted: int | None = None,
        rejected: tuple[Rejected, ...] | None = None,
        code: str | None = None,  # default: that of the status
    ) -> None:
        super().__init__(status, message, dict(headers or {}))
        self.accepted, self.rejected = accepted, rejected
        self.code = code or CODES.get(status, "refused")

    def response(self, request_id: str) -> Response:
        """The HTTP response."""
        refusal = Refusal(Error(self.code, self.detail, request_id), self.accepted, self.rejected)
        return json_response(refusal, self.status_code, self.headers)


def none_valid(rejected: Sequence[Rejected]) -> Problem:
    """The answer to a post of rows of which none is valid."""
    message = f"no valid row; row {rejected[0].row}: {rejected[0].reason}"
    return Problem(422, message, accepted=0, rejected=tuple(rejected))
