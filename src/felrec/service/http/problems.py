"""What a refused request gets: `{"error": {"code", "message", "request_id"}}`, never a traceback."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.responses import Response

CODES = {
    400: "bad_request",
    401: "unauthorised",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    409: "conflict",
    413: "too_large",
    415: "unsupported_media_type",
    421: "wrong_host",
    422: "invalid",
    429: "overloaded",
    500: "internal",
    501: "not_supported",
    503: "unavailable",
    507: "store_full",
}
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


class Problem(HTTPException):
    """A refusal with its status and a sentence; extra fields stand beside the error in the answer."""

    def __init__(
        self,
        status: int,
        message: str,
        headers: Mapping[str, str] | None = None,
        beside: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(status, message, dict(headers or {}))
        self.beside = dict(beside or {})

    def response(self, request_id: str) -> Response:
        """The answer."""
        code = CODES.get(self.status_code, "refused")
        error = {"code": code, "message": self.detail, "request_id": request_id}
        return json_response({"error": error, **self.beside}, self.status_code, self.headers)


def json_response(content: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """JSON as UTF-8, without a pass of validation over what we made ourselves."""
    return Response(_ENCODER.encode(content).encode(), status, dict(headers or {}), media_type="application/json")
