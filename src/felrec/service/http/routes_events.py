"""POST /v1/interactions: ingest events."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Annotated, Literal

from fastapi import APIRouter, Header, Query, Request, Response

from felrec.answers.types import Receipt, Rejected
from felrec.service.engine.types import IdempotencyKey
from felrec.service.http.access import key_of, result_of, service_of
from felrec.service.http.audit_entries import count_rows
from felrec.service.http.bodies import parsed_body, sent_as_lines
from felrec.service.http.event_parsing import read_events
from felrec.service.http.fast_route import FastRoute
from felrec.service.http.headers import retry_after
from felrec.service.http.problems import CAPACITY, Problem, none_valid
from felrec.service.http.responses import json_response
from felrec.service.http.schemas import EVENTS_BODY

router = APIRouter(prefix="/v1", tags=["events"], route_class=FastRoute)


@router.post("/interactions", responses={200: {"model": Receipt}}, openapi_extra=EVENTS_BODY)
async def post_interactions(
    request: Request,
    idempotency_key: Annotated[
        str | None,
        Header(min_length=1, max_length=256, description="events repeated with the same key are counted once"),
    ] = None,
    strict: Annotated[bool, Query(description="reject events with unknown fields instead of ignoring those")] = False,
    wait: Annotated[
        Literal["visible", "durable"],
        Query(description="durable: answer once events are on disk, though recommendations may not reflect them yet"),
    ] = "visible",
) -> Response:
    """Ingest one event, a list of at most 10,000, or one per line (NDJSON). Answers once they are on disk.

    Valid rows are ingested; invalid ones are rejected one by one with a reason. If no row is valid, the answer is 422.
    At a limit of users, items or memory, rows with new ids are rejected in the same way; if no row is left, it is 507.
    An event without a timestamp happens now. An event more than 300 s in the future is rejected. An event older than
    the newest one is applied in order of arrival and counted as late.

    Fields may have the usual names of columns in files, such as user_id, product_id and ts. Other fields are ignored,
    and the receipt counts them; with strict=true such events are rejected.

    If the service was started with a table of kinds (--kinds), the kind and value of an event say what it is worth: it
    counts with a weight, is only context, or speaks against the item. The receipt counts events that the table leaves
    out. Without a table, kind and value are unknown fields.

    If several processes share a store, wait=durable answers also while none of them writes; such a receipt does not say
    which events were late or did not fit.
    """
    service, lines = service_of(request), sent_as_lines(request, "events")
    if service.stopping:
        raise Problem(503, "the service is shutting down; retry later", retry_after(5))
    service.rates.check_events(key_of(request.scope), 0)  # before the body is read
    parse = partial(read_events, lines=lines, now=service.engine.clock.now(), strict=strict, kinds=service.kinds)
    events, rejected, ignored, left_out = await parsed_body(request, parse)
    service.rates.check_events(key_of(request.scope), len(events) + len(rejected) + (left_out or 0))
    count_rows(request, events=0, rejected=len(rejected))
    if not len(events) and rejected:
        service.metrics.took(0, 0, len(rejected))
        raise none_valid(rejected)
    key = IdempotencyKey(idempotency_key, await request.body()) if idempotency_key else None
    submitted = service.engine.submit(events, key, rejected, durable=wait == "durable")
    receipt = await result_of(request, submitted)
    count_rows(request, events=receipt.accepted, rejected=len(receipt.rejected))
    service.metrics.took(receipt.accepted, receipt.late, len(receipt.rejected))
    if receipt.rejected and not receipt.accepted:
        raise _none_fits(receipt, rejected)
    return json_response(replace(receipt, ignored=ignored, left_out=left_out) if ignored or left_out else receipt)


def _none_fits(receipt: Receipt, invalid: list[Rejected]) -> Problem:
    """All valid rows had new ids, for which there is no room."""
    first = next(row for row in receipt.rejected if row not in invalid)
    message = f"nothing was stored; row {first.row}: {first.reason}"
    return Problem(507, message, accepted=0, rejected=receipt.rejected, code=CAPACITY)
