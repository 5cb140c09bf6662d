"""POST /v1/interactions: events in."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Header, Request, Response
from starlette.concurrency import run_in_threadpool

from felrec.answers.types import Receipt, Rejected
from felrec.service.engine.types import IdempotencyKey
from felrec.service.http.access import media_type, service_of
from felrec.service.http.event_parsing import read_events
from felrec.service.http.fast_route import FastRoute
from felrec.service.http.middleware import retry_after
from felrec.service.http.problems import Problem
from felrec.service.http.responses import json_response
from felrec.service.http.schemas import EVENTS_BODY

LINES = ("application/x-ndjson", "application/jsonl")
LONG = 65_536  # bytes of a body that is read in a thread, so that the event loop goes on answering

router = APIRouter(prefix="/v1", tags=["events"], route_class=FastRoute)


@router.post("/interactions", responses={200: {"model": Receipt}}, openapi_extra=EVENTS_BODY)
async def post_interactions(
    request: Request,
    idempotency_key: Annotated[
        str | None, Header(min_length=1, max_length=256, description="the same key again counts the events once")
    ] = None,
) -> Response:
    """Ingest one event, a list of at most 10,000, or one a line (NDJSON). Answers once they are on disk.

    Good rows are taken, bad ones are refused one by one with the reason; if there is no good one, the answer is 422.
    Without a timestamp an event is of now. One more than 300 s in the future is refused. One older than the newest
    event is taken in order of arrival and counted as late.
    """
    service, kind = service_of(request), media_type(request)
    if kind != "application/json" and kind not in LINES:
        raise Problem(415, "send events as Content-Type: application/json, or application/x-ndjson for one a line")
    if service.stopping:
        raise Problem(503, "the service is stopping; send this again to the next one", retry_after(5))
    body = await request.body()
    if len(body) > LONG:
        events, rejected = await run_in_threadpool(read_events, body, kind in LINES)
    else:
        events, rejected = read_events(body, kind in LINES)
    if not len(events) and rejected:
        service.metrics.took(0, 0, len(rejected))
        raise _nothing_taken(rejected)
    key = IdempotencyKey(idempotency_key, body) if idempotency_key else None
    receipt = await asyncio.wrap_future(service.engine.submit(events, key, rejected))
    service.metrics.took(receipt.accepted, receipt.late, len(receipt.rejected))
    return json_response(receipt)


def _nothing_taken(rejected: list[Rejected]) -> Problem:
    message = f"no row could be taken; row {rejected[0].row}: {rejected[0].reason}"
    return Problem(422, message, accepted=0, rejected=tuple(rejected))
