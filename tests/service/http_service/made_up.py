"""Requests that schemathesis makes up from the OpenAPI document of a service: `python made_up.py URL KEY 10000`."""

from __future__ import annotations

import itertools
import sys
from collections import Counter
from contextlib import suppress
from typing import Any

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import Case, CheckFunction, GenerationMode
from schemathesis.checks import negative_data_rejection, positive_data_acceptance
from schemathesis.core.result import Ok
from schemathesis.schemas import APIOperation

Operation = APIOperation[Any, Any, Any, Any]
ONE_BY_ONE = ("/v1/interactions", "/v1/feedback", "/v1/map/match")


def send_made_up(url: str, key: str, cases: int) -> Counter[int]:
    """Send at least so many requests, good and bad in turn, and check every answer. How often each status came back."""
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
    operations = [found.ok() for found in schema.get_all_operations() if isinstance(found, Ok)]
    statuses: Counter[int] = Counter()
    with requests.Session() as session:
        session.trust_env = False
        for number in itertools.count():  # some operations have few different requests, so that it takes several rounds
            each = -(-(cases - statuses.total()) // (2 * len(operations)))
            if each <= 0:
                break
            for operation in operations:
                for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
                    _send(operation, mode, each, number, session, key, statuses)
    return statuses


def _send(
    operation: Operation,
    mode: GenerationMode,
    cases: int,
    number: int,
    session: requests.Session,
    key: str,
    statuses: Counter[int],
) -> None:
    headers = {"Authorization": f"Bearer {key}"}

    @seed(number)
    @settings(
        max_examples=cases,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(mode))
    def check(case: Case[Any]) -> None:
        answer = case.call(session=session, headers=headers)
        statuses[answer.status_code] += 1
        assert answer.status_code < 500
        case.validate_response(answer, headers=headers, excluded_checks=_not_for(operation))

    with suppress(Unsatisfiable):  # nothing can be wrong with a request that has no parameters
        check()


def _not_for(operation: Operation) -> list[CheckFunction]:
    """What the document cannot say.

    Times are good or bad by the clock, good rows are taken beside bad ones, and of two parameters one is needed. In an
    address everything is a string, so that what is no string in the document is one when it arrives.
    """
    if (operation.method, operation.path) == ("post", "/v1/items") or operation.path in ONE_BY_ONE:
        return [positive_data_acceptance, negative_data_rejection]
    return [] if operation.body else [negative_data_rejection]


if __name__ == "__main__":
    found = send_made_up(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    print(f"{found.total():,} requests, none failed:", ", ".join(f"{n:,} x {status}" for status, n in found.items()))
