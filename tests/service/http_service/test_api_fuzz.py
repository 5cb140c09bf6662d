"""Requests made up from the OpenAPI document, and ids nobody would think of: no 5xx, nothing lost, one shape."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from felrec.service.http.keys import KeyFile
from http_service.made_up import send_made_up
from http_service.running import Open, Opened

TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=300)  # lone surrogates too
ODD = st.sampled_from(
    [
        "",
        "\0",
        "a\0b",
        "🎵" * 256,
        "🎵" * 257,
        "../../etc",
        "%00",
        "%2e%2e%2f",
        "' OR 1=1 --",
        "\ud800",
        "\u202e",
    ]
)
IDS: st.SearchStrategy[Any] = st.one_of(
    TEXT, ODD, st.integers(), st.none(), st.booleans(), st.floats(), st.lists(TEXT, max_size=1)
)
TIMES = st.one_of(st.none(), st.integers(), st.floats(), TEXT, st.booleans(), st.datetimes().map(str))
ROWS = st.one_of(
    st.fixed_dictionaries({"user": IDS, "item": IDS}, optional={"timestamp": TIMES}),
    st.fixed_dictionaries({"user": st.just("u"), "item": TEXT}),
    TEXT,
    st.integers(),
)
FEW = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


def test_made_up_requests(open_service: Open, tmp_path: Path) -> None:
    keys = KeyFile(tmp_path / "keys.json")
    secret, _ = keys.add(["read", "write"])
    statuses = send_made_up(open_service(keys=keys).url, secret, 200)
    assert statuses.total() >= 200
    assert statuses[200] > 20
    assert statuses[422] > 20


@FEW
@given(rows=st.lists(ROWS, max_size=20))
@example(rows=[{"user": "x" * 2**20, "item": "a"}, {"user": "a", "item": "b"}])
@example(rows=[{"user": 10**5000, "item": "a"}])
def test_what_is_accepted_is_counted_and_nothing_else(service: Opened, rows: list[Any]) -> None:
    before = service.count()
    try:
        body = json.dumps(rows).encode()
    except ValueError:  # a number of thousands of digits
        body = b'[{"user": 1' + b"0" * 5000 + b', "item": "a"}]'
    answer = service.post("/v1/interactions", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in (200, 422)
    told = answer.json()
    accepted, rejected = told.get("accepted", 0), told.get("rejected", [])
    assert service.count() == before + accepted
    if "accepted" in told:
        assert accepted + len(rejected) == len(rows)
        assert len({row["row"] for row in rejected}) == len(rejected)


@FEW
@given(identifier=st.one_of(TEXT.filter(lambda text: text not in (".", "..")), ODD.filter(bool)))
@example(identifier="x" * 60_000)
def test_any_id_in_any_path(service: Opened, identifier: str) -> None:
    path = quote(identifier, safe="", errors="surrogatepass")
    for method, url in (
        ("GET", f"/v1/users/{path}/recommendations"),
        ("GET", f"/v1/items/{path}/similar"),
        ("GET", f"/v1/users/{path}"),
        ("PUT", f"/v1/items/{path}"),
        ("GET", f"/v1/items/{path}"),
        ("DELETE", f"/v1/users/{path}"),
    ):
        answer = service.request(method, url, json={} if method == "PUT" else None)
        assert answer.status_code < 500, url
        if answer.status_code == 200 and method == "PUT":
            assert answer.json()["id"] == identifier


@FEW
@given(raw=st.binary(min_size=1, max_size=30))
def test_any_bytes_in_a_path(service: Opened, raw: bytes) -> None:
    path = "".join(f"%{byte:02X}" for byte in raw)
    assert service.get(f"/v1/users/{path}/recommendations").status_code in (200, 422)
    assert service.get(f"/v1/users/ada/recommendations?candidates={path}&tags={path}").status_code in (200, 422)


@FEW
@given(body=st.binary(max_size=200), lines=st.booleans())
def test_any_bytes_as_a_body(service: Opened, body: bytes, lines: bool) -> None:
    before = service.count()
    kind = "application/x-ndjson" if lines else "application/json"
    answer = service.post("/v1/interactions", content=body, headers={"Content-Type": kind})
    assert answer.status_code in (200, 422)
    assert service.count() == before + answer.json().get("accepted", 0)
