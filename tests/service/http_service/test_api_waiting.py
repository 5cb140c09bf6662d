"""Reads never wait for writes: while the ingest thread does other work, writes wait and every read is answered."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from felrec.service.engine.engine import Engine
from felrec.service.engine.limits import Limits
from felrec.service.http.bodies import LONG
from felrec.service.http.schemas import Attributes, Session
from http_service.running import Open, Opened

READS = (
    *("/", "/static/style.css", "/healthz", "/readyz", "/metrics", "/openapi.json", "/v1/stats", "/v1/map"),
    *("/v1/users", "/v1/users?sample=true", "/v1/users/1", "/v1/users/1/neighbours", "/v1/users/1/recommendations"),
    *("/v1/users/1/recommendations?why=true", "/v1/items", "/v1/items/1", "/v1/items/1/similar"),
    *("/v1/items/1/audience", "/v1/items/1/rank?users=1", "/v1/map/match?user=1"),
)


def engine_of(service: Opened) -> Engine:
    engine: Engine = service.app.state.service.engine
    return engine


@contextmanager
def busy_ingest(service: Opened) -> Iterator[None]:
    """Give the ingest thread work that ends with the block, as if its disk were slow."""
    begun, released = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        released.wait(120)

    done = engine_of(service)._ingest.run(work)
    assert begun.wait(60)
    try:
        yield
    finally:
        released.set()
        done.result(60)


def wait_until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def send(pool: ThreadPoolExecutor, service: Opened, method: str, path: str, **options: Any) -> Future[httpx.Response]:
    return pool.submit(service.request, method, path, timeout=120, **options)


def test_every_read_is_answered_while_writes_wait(open_service: Open) -> None:
    service = open_service()
    items = {str(item["id"]) for item in service.get("/v1/items?limit=20").json()["items"]} - {"1"}
    users = {str(user["id"]) for user in service.get("/v1/users?limit=20").json()["users"]} - {"1"}
    writes = [("PUT", f"/v1/items/new-{n}", {"json": {"title": "x"}}) for n in range(20)]
    writes += [("DELETE", f"/v1/items/{item}", {}) for item in sorted(items)[:10]]
    writes += [("DELETE", f"/v1/users/{user}", {}) for user in sorted(users)[:10]]
    with ThreadPoolExecutor(len(writes)) as pool, busy_ingest(service):
        waiting = [send(pool, service, method, path, **options) for method, path, options in writes]
        wait_until(lambda: engine_of(service)._ingest._tasks == len(writes))
        for path in READS:
            assert service.get(path, timeout=30).status_code == 200, path
        session = service.post("/v1/recommendations", json={"items": ["1"]}, timeout=30)
        assert session.status_code == 200
        assert not any(one.done() for one in waiting)
    assert {one.result().status_code for one in waiting} == {200, 204}


def test_too_many_waiting_changes_are_refused_and_events_are_not(open_service: Open) -> None:
    service = open_service(limits=Limits(tasks=3))
    with ThreadPoolExecutor(4) as pool:
        with busy_ingest(service):
            waiting = [send(pool, service, "PUT", f"/v1/items/{n}", json={}) for n in range(3)]
            wait_until(lambda: engine_of(service)._ingest._tasks == 3)
            for method, path, body in (("PUT", "/v1/items/9", {}), ("DELETE", "/v1/items/9", None)):
                refused = service.request(method, path, json=body)
                assert (refused.status_code, refused.json()["error"]["code"]) == (429, "overloaded")
                assert int(refused.headers["retry-after"]) >= 1
            posted = send(pool, service, "POST", "/v1/interactions", json={"user": "a", "item": "b"})
            wait_until(lambda: engine_of(service).health().queue_depth == 1)
        assert {one.result().status_code for one in (*waiting, posted)} == {200}
    assert service.put("/v1/items/9", json={}).status_code == 200


def test_a_client_that_leaves_does_not_cancel_its_write(open_service: Open) -> None:
    service = open_service()
    body = json.dumps({"title": "Left behind"})
    head = (
        f"PUT /v1/items/1 HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    )
    with busy_ingest(service):
        with socket.create_connection(("127.0.0.1", int(service.url.rpartition(":")[2]))) as client:
            client.sendall(f"{head}\r\n\r\n{body}".encode())
            wait_until(lambda: engine_of(service)._ingest._tasks == 1)
        assert service.get("/v1/items/1").json()["title"] is None
    wait_until(lambda: service.get("/v1/items/1").json()["title"] == "Left behind")


@pytest.mark.parametrize(
    ("method", "path", "schema", "body"),
    [
        ("PUT", "/v1/items/1", Attributes, {"title": "x"}),
        ("POST", "/v1/recommendations", Session, {"items": ["1", "2"]}),
    ],
)
def test_long_bodies_are_parsed_outside_the_event_loop(
    service: Opened, monkeypatch: pytest.MonkeyPatch, method: str, path: str, schema: Any, body: dict[str, Any]
) -> None:
    threads: list[str] = []
    parse = schema.model_validate_json

    def noticed(text: bytes) -> object:
        threads.append(threading.current_thread().name)
        return parse(text)

    monkeypatch.setattr(schema, "model_validate_json", noticed)
    headers = {"Content-Type": "application/json"}
    short = json.dumps(body)
    for text in (short, short + " " * LONG):
        assert service.request(method, path, content=text, headers=headers).status_code == 200
    assert [thread == "AnyIO worker thread" for thread in threads] == [False, True]


def test_reads_do_not_wait_for_the_parsing_of_writes(open_service: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    service, parse, released = open_service(), Attributes.model_validate_json, threading.Event()
    parsing: list[object] = []

    def slow(text: bytes) -> object:
        parsing.append(text)
        released.wait(120)
        return parse(text)

    monkeypatch.setattr(Attributes, "model_validate_json", slow)
    with ThreadPoolExecutor(20) as pool:
        content = "{}" + " " * LONG
        headers = {"Content-Type": "application/json"}
        waiting = [send(pool, service, "PUT", "/v1/items/1", content=content, headers=headers) for _ in range(20)]
        try:
            wait_until(lambda: bool(parsing))
            assert service.get("/v1/users", timeout=30).status_code == 200
            session = {"items": ["1"], "candidates": ["x" * 200] * 1_000}
            assert service.post("/v1/recommendations", json=session, timeout=30).status_code == 200
        finally:
            released.set()
    assert {one.result().status_code for one in waiting} == {200}


@pytest.mark.parametrize(("method", "path"), [("PUT", "/v1/items/1"), ("POST", "/v1/recommendations")])
@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100,
        b"[" * 1_000_000,
        b'{"a":' * 200_000,
        b'{"k": ' + b"9" * 1_000_000 + b"}",
        b'{"k": 1e999, "items": [1e999], "title": -1e999}',
        b'{"k": NaN, "items": [NaN], "title": NaN}',
        b'{"title": "\\ud800", "items": ["\\ud800"]}',
        b"\xff\xfe",
        b"",
    ],
    ids=["nested", "deep", "deep objects", "digits", "exponent", "nan", "surrogate", "bytes", "empty"],
)
def test_bodies_made_to_harm_get_422(service: Opened, method: str, path: str, body: bytes) -> None:
    answer = service.request(method, path, content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "invalid")
