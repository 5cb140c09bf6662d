"""What every request passes, in one pass, before a route answers it and after."""

from __future__ import annotations

import time
from collections.abc import Callable
from urllib.parse import quote

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from felrec.service.http.access import Guard
from felrec.service.http.admission import Admission
from felrec.service.http.fast_route import FrequentRoutes
from felrec.service.http.headers import add_headers, check_host, chosen_request_id
from felrec.service.http.refusals import refusal

Finished = Callable[[Scope, int, float], None]
"""Called after each request with its scope, its status and its duration in seconds."""


class Gate:
    """Gives a request its id, checks host, limits and key, has it answered, adds headers and reports the end.

    Frequent routes are called from here. FastAPI answers the others, and takes twice as long to find a route.
    """

    def __init__(
        self,
        app: ASGIApp,
        hosts: frozenset[str] | None,
        admission: Admission,
        guard: Guard,
        frequent: FrequentRoutes,
        finished: Finished,
        age: Callable[[], float | None],
    ) -> None:
        """`age` is for how many seconds answers may have been out of date, if that can be."""
        self.app, self.hosts, self.admission = app, hosts, admission
        self.guard, self.frequent, self.finished, self.age = guard, frequent, finished, age

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if scope["method"] == "HEAD":  # answered like GET; the server omits the body
            scope = {**scope, "method": "GET"}
        began, status = time.perf_counter(), 0
        identifier = scope.setdefault("state", {})["request_id"] = chosen_request_id(scope)

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                add_headers(message["headers"], identifier, self.age())
            await send(message)

        try:
            await self._answer(scope, receive, send_with_headers)
        except Exception as error:
            refused = refusal(error, scope)
            if status == 0:
                await refused(scope, receive, send_with_headers)
        finally:
            self.finished(scope, status or 499, time.perf_counter() - began)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        check_host(scope, self.hosts)
        with self.admission.admit(scope, receive) as admitted:
            if scope.get("raw_path"):
                scope["path"] = _encoded(scope["raw_path"])
            self.guard.check(scope)
            handle = self.frequent.find(scope)
            if handle is None:
                await self.app(scope, admitted.receive, send)
            else:
                answer = await handle(Request(scope, admitted.receive))
                await answer(scope, admitted.receive, send)


def _encoded(raw: bytes) -> str:
    r"""The path as it was sent, percent-encoded: routes match this one, so that an id may contain a slash (`%2F`).

    >>> _encoded(b"/v1/items/a%2Fb"), _encoded(b"/caf\xc3\xa9?k=1")
    ('/v1/items/a%2Fb', '/caf%C3%A9')
    """
    path = raw.partition(b"?")[0]
    return quote(path, safe="/%:@!$&'()*+,;=~")
