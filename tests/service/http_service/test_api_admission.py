"""Requests in flight are counted by kind: slow bodies and waiting writes keep no read out."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from felrec.service.http import app as application
from felrec.service.http.admission import Admission, InFlight, Kind
from felrec.service.http.keys import KeyFile
from http_service.running import Open, Opened
from http_service.test_api_waiting import wait_until

FEW = 6  # requests of a kind, instead of 256
READ_WITH_BODY, WRITE_WITH_BODY = ("read", True), ("write", True)


@pytest.fixture
def limited(open_service: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Opened:
    """A service with keys that takes few requests of each kind; the client has a key for everything."""
    monkeypatch.setattr(application, "MAX_REQUESTS", FEW)
    monkeypatch.setattr(application, "MAX_BODIES", FEW * 100_000)
    keys = KeyFile(tmp_path / "keys.json")
    service = open_service(keys=keys, hosts=None)
    service.headers["Authorization"] = f"Bearer {keys.add(['read', 'write'])[0]}"
    service.headers["Read-Only"] = f"Bearer {keys.add(['read'])[0]}"
    return service


def flying(service: Opened, kind: Kind) -> InFlight:
    admission: Admission = service.app.state.admission
    return admission.in_flight[kind]


@contextmanager
def slow_bodies(service: Opened, line: str, key: str, count: int = FEW, sent: int = 1) -> Iterator[None]:
    """Begin requests, by default as many as there may be, and do not finish their bodies."""
    kind = READ_WITH_BODY if "recommendations" in line else WRITE_WITH_BODY
    head = f"{line} HTTP/1.1\r\nHost: x\r\nAuthorization: {key}\r\nContent-Type: application/json\r\n"
    with ExitStack() as stack:
        for _ in range(count):
            client = socket.create_connection(("127.0.0.1", int(service.url.rpartition(":")[2])))
            stack.enter_context(client)
            client.sendall(f"{head}Content-Length: {sent + 1}\r\n\r\n{' ' * sent}".encode())
        wait_until(lambda: flying(service, kind).bytes == count * sent)
        yield
    wait_until(lambda: flying(service, kind) == InFlight())


def statuses(service: Opened) -> dict[str, int]:
    return {
        "healthz": service.get("/healthz").status_code,
        "metrics": service.get("/metrics").status_code,
        "page": service.get("/").status_code,
        "read": service.get("/v1/users").status_code,
        "session": service.post("/v1/recommendations", json={"items": ["1"]}).status_code,
        "post": service.post("/v1/interactions", json={"user": "a", "item": "b"}).status_code,
        "put": service.put("/v1/items/b", json={}).status_code,
        "delete": service.delete("/v1/items/unknown").status_code,
    }


ALL = {"healthz": 200, "metrics": 200, "page": 200, "read": 200, "session": 200, "post": 200, "put": 200, "delete": 404}


def test_slow_bodies_with_a_read_key_keep_out_only_their_like(limited: Opened) -> None:
    with slow_bodies(limited, "POST /v1/recommendations", limited.headers["Read-Only"]):
        assert statuses(limited) == {**ALL, "session": 429}
    assert statuses(limited) == ALL


def test_slow_bodies_of_writes_keep_no_read_out(limited: Opened) -> None:
    with slow_bodies(limited, "POST /v1/interactions", limited.headers["Authorization"]):
        assert statuses(limited) == {**ALL, "post": 429, "put": 429}
    assert statuses(limited) == ALL


def test_bytes_of_read_bodies_do_not_count_for_writes(limited: Opened) -> None:
    with slow_bodies(limited, "POST /v1/recommendations", limited.headers["Read-Only"], 1, FEW * 100_000):
        assert statuses(limited) == {**ALL, "session": 429}
    assert statuses(limited) == ALL


def test_a_key_without_the_scope_occupies_nothing(limited: Opened) -> None:
    port, key = int(limited.url.rpartition(":")[2]), limited.headers["Read-Only"]
    head = f"POST /v1/interactions HTTP/1.1\r\nHost: x\r\nAuthorization: {key}\r\nContent-Length: 2\r\n\r\n "
    with ExitStack() as stack:
        for _ in range(FEW):
            client = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            client.sendall(head.encode())
            assert b"403 Forbidden" in client.recv(100)
        assert statuses(limited) == ALL
