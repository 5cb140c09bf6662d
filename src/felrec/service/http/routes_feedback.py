"""POST /v1/feedback: what became of recommendations."""

from __future__ import annotations

from collections.abc import Iterable

from fastapi import APIRouter, Request, Response
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool

from felrec.answers.statistics import FeedbackReceipt
from felrec.answers.types import (
    Rejected,
)
from felrec.errors import InvalidRequest
from felrec.service.engine.feedback import Feedback
from felrec.service.http.access import key_of, service_of
from felrec.service.http.audit_entries import count_rows
from felrec.service.http.bodies import parsed_body, sent_as_lines
from felrec.service.http.fast_route import FastRoute
from felrec.service.http.problems import none_valid
from felrec.service.http.responses import json_response
from felrec.service.http.row_bodies import as_object, rows_of
from felrec.service.http.schemas import FEEDBACK_BODY, Report

_ADVICE = "give an object with ticket, kind and position"
router = APIRouter(prefix="/v1", tags=["recommendations"], route_class=FastRoute)


@router.post("/feedback", responses={200: {"model": FeedbackReceipt}}, openapi_extra=FEEDBACK_BODY)
async def post_feedback(request: Request) -> Response:
    """Report that places of recommendation lists were shown or clicked: one report, a list, or one per line (NDJSON).

    A report names the list by the `ticket` of its answer, and the place by its position in that answer, from 0. An
    impression without a position is one of the whole list. A click counts as an impression too. What was reported
    before is accepted and not counted again. Reports are rejected one by one if the service never answered with their
    ticket, if it is older than 24 hours, or if the list has no such place; if none is left, the answer is 422.
    """
    service, lines = service_of(request), sent_as_lines(request, "reports")
    service.rates.check_events(key_of(request.scope), 0)  # before the body is read
    rows = await parsed_body(request, lambda body: list(rows_of(body, lines)))
    service.rates.check_events(key_of(request.scope), len(rows))
    receipt = await run_in_threadpool(_counted, service.engine.feedback, rows)
    count_rows(request, reports=receipt.accepted, rejected=len(receipt.rejected))
    if receipt.rejected and not receipt.accepted:
        raise none_valid(receipt.rejected)
    return json_response(receipt)


def _counted(feedback: Feedback, rows: Iterable[tuple[int, object]]) -> FeedbackReceipt:
    rejected, accepted, repeated = list[Rejected](), 0, 0
    for number, row in rows:
        try:
            report = Report.model_validate(as_object(row, _ADVICE))
            is_new = feedback.report(report.ticket, report.kind, report.position)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            rejected.append(Rejected(number, f"{'.'.join(map(str, first['loc']))}: {first['msg']}"))
        except (ValueError, InvalidRequest) as error:
            rejected.append(Rejected(number, str(error)))
        else:
            accepted += 1
            repeated += not is_new
    return FeedbackReceipt(accepted, repeated, tuple(rejected))
