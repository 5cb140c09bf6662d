"""A frequent route answers as FastAPI would: the same function, found sooner."""

from __future__ import annotations

import json
import re
from pathlib import Path

import httpx
import pytest
from starlette.types import Scope

from felrec.answers.statistics import Alive
from felrec.answers.types import (
    Answer,
    Error,
    Reason,
    Receipt,
    Recommendation,
    Recommendations,
    Refusal,
    Rejected,
)
from felrec.service.http.fast_route import FrequentRoutes
from felrec.service.http.keys import KeyFile
from felrec.service.http.responses import json_response
from http_service.running import Open, Opened

REQUESTS = [
    ("GET", "/healthz", None),
    ("GET", "/healthz?from=probe", None),
    ("HEAD", "/healthz", None),
    ("PUT", "/healthz", None),
    ("GET", "/v1/users/1/recommendations", None),
    ("GET", "/v1/users/1/recommendations?k=3&exclude_seen=true&why=true", None),
    ("GET", "/v1/users/1/recommendations?k=3&k=2", None),
    ("GET", "/v1/users/1/recommendations?candidates=1,2&tags=", None),
    ("GET", "/v1/users/1/recommendations?candidates=1&candidates=2%2C3", None),
    ("GET", "/v1/users/a%2Fb/recommendations?k=1", None),
    ("GET", "/v1/users/%ff/recommendations", None),
    ("GET", "/v1/users/1/recommendations?k=0", None),
    ("GET", "/v1/users/1/recommendations?k", None),
    ("GET", "/v1/users/1/recommendations?kk=1&k=x", None),
    ("GET", "/v1/users//recommendations", None),
    ("DELETE", "/v1/users/1/recommendations", None),
    ("POST", "/v1/recommendations", b'{"items": ["1", 2], "k": 2}'),
    ("POST", "/v1/recommendations", b'{"items": ["1", 2], "kk": 2}'),
    ("POST", "/v1/recommendations?k=2", b'{"items": []}'),
    ("POST", "/v1/recommendations", b"["),
    ("POST", "/v1/interactions", b"[]"),
    ("POST", "/v1/interactions", b'[{"user": "", "item": "b"}]'),
    ("POST", "/v1/interactions?x=1", b"[]"),
    ("GET", "/v1/interactions", None),
]


def seen(answer: httpx.Response) -> tuple[int, str, list[tuple[str, str]]]:
    """What a client sees, apart from what differs from request to request."""
    text = re.sub(r'"(milliseconds|request_id|ticket)":[^,}]*', "", answer.text)
    varying = ("date", "content-length", "x-request-id")
    return answer.status_code, text, sorted(pair for pair in answer.headers.items() if pair[0] not in varying)


@pytest.mark.parametrize(("method", "path", "body"), REQUESTS)
def test_answers_are_those_of_fastapi(
    service: Opened, monkeypatch: pytest.MonkeyPatch, method: str, path: str, body: bytes | None
) -> None:
    headers, found, find = {"Content-Type": "application/json"}, list[bool](), FrequentRoutes.find

    def noticed(routes: FrequentRoutes, scope: Scope) -> object:
        handle = find(routes, scope)
        found.append(handle is not None)
        return handle

    monkeypatch.setattr(FrequentRoutes, "find", noticed)
    soon = service.request(method, path, content=body, headers=headers)
    monkeypatch.setattr(FrequentRoutes, "find", lambda *_: None)
    usual = service.request(method, path, content=body, headers=headers)
    assert seen(soon) == seen(usual)
    assert found == [usual.status_code not in (404, 405)]


def test_keys_are_asked_for(open_service: Open, tmp_path: Path) -> None:
    service = open_service(keys=KeyFile(tmp_path / "keys.json"), hosts=None)
    assert service.get("/healthz").status_code == 200
    for method, path in (("GET", "/v1/users/1/recommendations"), ("POST", "/v1/interactions")):
        assert service.request(method, path).status_code == 401


AGAIN = Reason("again", 0.1, "you had it once", (), events=1)
ANSWERS: list[tuple[Answer, object]] = [
    (Alive("alive"), {"status": "alive"}),
    (
        Receipt(1, 0, (Rejected(1, "é"),), 9),
        {"accepted": 1, "late": 0, "rejected": [{"row": 1, "reason": "é"}], "events": 9},
    ),
    (
        Recommendations(True, (Recommendation("a", 0.5, None, ("b",)),), (), milliseconds=1.5),
        {
            "known": True,
            "items": [{"id": "a", "score": 0.5, "title": None, "tags": ["b"]}],
            "ignored": [],
            "milliseconds": 1.5,
        },
    ),
    (
        Recommendations(True, (Recommendation("a", 0.5, "A", (), (AGAIN,)),), ("x",), 2.0, user="u"),
        {
            "user": "u",
            "known": True,
            "items": [
                {
                    "id": "a",
                    "score": 0.5,
                    "title": "A",
                    "tags": [],
                    "why": [{"kind": "again", "share": 0.1, "text": "you had it once", "items": [], "events": 1}],
                }
            ],
            "ignored": ["x"],
            "milliseconds": 2.0,
        },
    ),
    (Refusal(Error("x", "y", "z")), {"error": {"code": "x", "message": "y", "request_id": "z"}}),
    (
        Refusal(Error("x", "y", "z"), 0, (Rejected(0, "bad"),)),
        {
            "error": {"code": "x", "message": "y", "request_id": "z"},
            "accepted": 0,
            "rejected": [{"row": 0, "reason": "bad"}],
        },
    ),
]


@pytest.mark.parametrize(("answer", "fields"), ANSWERS)
def test_answers_are_written_without_fields_that_are_not_set(answer: Answer, fields: object) -> None:
    response = json_response(answer, headers={"retry-after": "1"})
    assert json.loads(bytes(response.body)) == fields
    assert dict(response.raw_headers) == {
        b"retry-after": b"1",
        b"content-length": b"%d" % len(response.body),
        b"content-type": b"application/json",
    }
