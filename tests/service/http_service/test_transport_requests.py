"""What arrives on a connection is bounded, and one request never becomes another."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path

import httpx
import pytest

from felrec.answers.types import Refusal
from felrec.service.http.protocol import MAX_HEADERS
from http_service.raw import GET, POST, SESSION, Raw, resident_bytes
from http_service.running import Opened, checked, start

EVENT = b'{"user": "ada", "item": "a"}'
MEGABYTE = 10**6
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def post(body: bytes, headers: bytes = b"") -> bytes:
    return POST + headers + b"Content-Length: %d\r\n\r\n" % len(body) + body


HEADS = {
    "one long value": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"x" * MAX_HEADERS,
    "one long name": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + b"x" * MAX_HEADERS,
    "many headers": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + b"X-Short: y\r\n" * (MAX_HEADERS // 12),
    "a long address": b"GET /healthz?" + b"x" * MAX_HEADERS,
    "empty lines": b"\r\n" * (MAX_HEADERS // 2 + 2),
    "after a post": post(EVENT) + b"GET /healthz?" + b"x" * MAX_HEADERS,
}


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
def test_long_headers_are_431_and_the_end(service: Opened, head: bytes) -> None:
    with Raw(service.url) as client:
        client.send(head)
        answer = client.answer()
        if head.startswith(b"POST"):
            assert answer.status == 200
            answer = client.answer()
        assert (answer.status, answer.headers["connection"]) == (431, "close")
        error = checked(Refusal, answer.json).error
        assert (error.code, error.request_id) == ("headers_too_large", answer.headers["x-request-id"])
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert client.is_closed()


def test_headers_up_to_the_limit_are_answered(service: Opened) -> None:
    head = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: "
    with Raw(service.url) as client:
        for size, status in ((MAX_HEADERS, 200), (MAX_HEADERS, 200), (MAX_HEADERS + 1, 431)):
            client.send(head + b"x" * (size - len(head) - 4) + b"\r\n\r\n")
            assert client.answer().status == status


@on_linux
def test_headers_and_trailers_without_end_take_no_memory(run: Path, tmp_path: Path) -> None:
    chunked = b"Transfer-Encoding: chunked\r\n\r\n0\r\n"
    with start(run, tmp_path / "store.sqlite") as running:
        httpx.get(f"{running.url}/healthz")
        before = resident_bytes(running.process.pid)
        for begun in (b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nX-Long: ", b"GET /", POST + chunked):
            with Raw(running.url) as client:
                client.send(begun)
                client.flood(b"X-Header: y" * 100, 100 * MEGABYTE)
                assert resident_bytes(running.process.pid) - before < 30 * MEGABYTE
        assert httpx.get(f"{running.url}/healthz").status_code == 200


@on_linux
def test_requests_whose_answers_are_not_read_take_no_memory(run: Path, tmp_path: Path) -> None:
    with start(run, tmp_path / "store.sqlite") as running, Raw(running.url, receive_buffer=4096) as client:
        assert httpx.get(f"{running.url}/healthz").status_code == 200
        before = resident_bytes(running.process.pid)
        assert client.flood(GET * 1000, 200 * MEGABYTE) < 200 * MEGABYTE
        assert httpx.get(f"{running.url}/healthz").status_code == 200
        assert resident_bytes(running.process.pid) - before < 30 * MEGABYTE
        assert {client.answer().status for _ in range(1_000)} == {200}


def test_pipelined_posts_are_answered_in_order(service: Opened) -> None:
    before = service.count()
    requests = b"".join(post(b"[%b]" % b",".join([EVENT] * rows)) for rows in (3, 1, 2)) + GET
    for cut in (len(requests), 1, 7, 64):  # however it arrives
        with Raw(service.url) as client:
            for begin in range(0, len(requests), cut):
                client.send(requests[begin : begin + cut])
            assert [client.answer().json["accepted"] for _ in range(3)] == [3, 1, 2]
            assert client.answer().json == {"status": "alive"}
    assert service.count() == before + 4 * 6


def test_a_client_that_stops_sending_gets_its_answers(service: Opened) -> None:
    with Raw(service.url) as client:
        client.send(post(EVENT) + post(EVENT))
        client.socket.shutdown(socket.SHUT_WR)
        assert [client.answer().status, client.answer().status] == [200, 200]
        assert client.is_closed()
    with Raw(service.url) as client:  # half a request is none
        client.send(post(EVENT)[:-1])
        client.socket.shutdown(socket.SHUT_WR)
        assert client.is_closed()


def test_a_client_that_expects_a_continue_gets_it(service: Opened) -> None:
    with Raw(service.url) as client:
        client.send(POST + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(EVENT))
        assert client.answer().status == 100
        assert client.send(EVENT).answer().status == 200
        client.send(POST.replace(b"json", b"xml") + b"Expect: 100-continue\r\nContent-Length: 5\r\n\r\n")
        assert client.answer().status == 415  # without having asked for the body


def test_chunked_bodies(service: Opened) -> None:
    chunks = b"".join(
        b"%x\r\n%b\r\n" % (len(part), part) for part in (b'{"user": "ada",', b"\r\n\r\n", b'"item": "a"}')
    )
    with Raw(service.url) as client:
        client.send(POST + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n" + GET)
        assert client.answer().json["accepted"] == 1
        assert client.answer().json == {"status": "alive"}


def test_a_trailer_is_no_header(service: Opened) -> None:
    with Raw(service.url) as client:
        body = b"%x\r\n%b\r\n0\r\nX-Request-ID: from-a-trailer\r\n\r\n" % (len(EVENT), EVENT)
        client.send(POST + b"Transfer-Encoding: chunked\r\n\r\n" + body)
        answer = client.answer()
        assert answer.status == 200
        assert answer.headers["x-request-id"] != "from-a-trailer"


def test_a_chunked_body_without_end_is_413_and_the_end(service: Opened) -> None:
    with Raw(service.url) as client:
        client.send(POST + b"Transfer-Encoding: chunked\r\n\r\n")
        client.flood(b"%x\r\n%b\r\n" % (MEGABYTE, b" " * MEGABYTE), 200 * MEGABYTE)
        assert client.answer().status == 413
        assert client.is_closed()


def test_the_rest_of_a_refused_body_is_not_a_request(service: Opened) -> None:
    hidden = b"DELETE /v1/users/ada HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with Raw(service.url) as client:
        client.send(POST.replace(b"json", b"xml") + b"Content-Length: %d\r\n\r\n" % len(hidden))
        assert client.answer().status == 415
        client.send(hidden + GET)
        assert client.answer().json == {"status": "alive"}


def test_upgrades_are_ignored_or_refused(service: Opened) -> None:
    upgrade = b"Connection: Upgrade\r\nUpgrade: h2c\r\n"
    with Raw(service.url) as client:
        client.send(GET.replace(b"\r\n\r\n", b"\r\n" + upgrade + b"\r\n") + b"PRI * HTTP/2.0\r\n\r\n")
        answer = client.answer()
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        assert client.is_closed()
    before = service.count()
    with Raw(service.url) as client:
        client.send(post(EVENT, upgrade))
        assert (answer := client.answer()).status == 501
        assert "without the header Upgrade" in answer.json["error"]["message"]
    assert service.count() == before


@pytest.mark.parametrize(
    "headers",
    [
        b"Content-Length: 5\r\nTransfer-Encoding: chunked",
        b"Transfer-Encoding: chunked\r\nContent-Length: 5",
        b"Content-Length: 5\r\nContent-Length: 6",
        b"Content-Length: +5",
        b"Content-Length: 5, 5",
        b"Transfer-Encoding: chunked, identity",
        b"Transfer-Encoding : chunked",
        b"Content-Length: 5\nX-Bare: newline",
    ],
)
def test_a_body_of_doubtful_length_is_refused(service: Opened, headers: bytes) -> None:
    with Raw(service.url) as client:
        client.send(POST + headers + b"\r\n\r\n0\r\n\r\n" + GET)
        answer = client.answer()
        assert (answer.status, checked(Refusal, answer.json).error.code) == (400, "bad_request")
        assert client.is_closed()


def test_bytes_that_are_not_http_get_one_answer(service: Opened) -> None:
    with Raw(service.url) as client:
        client.send(GET + b"\x16\x03\x01 hello\r\n\r\n")
        assert client.answer().status == 200
        assert client.answer().json["error"]["message"] == "this is not a valid HTTP/1.1 request"
        assert client.is_closed()


def test_a_broken_chunk_is_400(service: Opened) -> None:
    before = service.count()
    with Raw(service.url) as client:
        client.send(SESSION + b"Transfer-Encoding: chunked\r\n\r\nnot a size\r\n")
        assert json.loads(client.answer().body)["error"]["code"] == "bad_request"
        assert client.is_closed()
    assert service.count() == before
