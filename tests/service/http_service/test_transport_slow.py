"""Clients that are slow or many on purpose take no place from the others, and do not keep the service from stopping."""

from __future__ import annotations

import asyncio
import json
import resource
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest

from felrec.errors import ConfigError
from felrec.service.http.app import MAX_BODIES, MAX_BODY, MAX_REQUESTS
from felrec.service.http.connections import DEFAULT_LIMITS, ConnectionLimits
from felrec.service.http.keys import KeyFile
from felrec.service.http.listening import allow_connections
from http_service.raw import GET, POST, SESSION, Raw
from http_service.running import Open, Opened, start

EVENT = b'{"user": "ada", "item": "a"}'
PAGES = GET.replace(b"/healthz", b"/openapi.json") * 100
WITH_BODY = POST + b"Content-Length: %d\r\n\r\n" % len(EVENT)


class Gate:
    """The route /gate, which answers once it is open."""

    def __init__(self, service: Opened) -> None:
        self.reached, self._open = threading.Semaphore(0), threading.Event()
        service.app.add_api_route("/gate", self._pass)

    async def _pass(self) -> str:
        self.reached.release()
        while not self._open.is_set():
            await asyncio.sleep(0.01)
        return "passed"

    def ask(self, url: str) -> Raw:
        """Send a request, and wait until it is being answered."""
        client = Raw(url).send(GET.replace(b"/healthz", b"/gate"))
        assert self.reached.acquire(timeout=60)
        return client

    def open(self) -> None:
        """Let all pass."""
        self._open.set()


def test_slow_headers_are_408(open_service: Open) -> None:
    service = open_service(connections=ConnectionLimits(head_seconds=0.2))
    with Raw(service.url) as silent, Raw(service.url) as slow:
        answer = slow.send(GET[:-2]).answer()
        assert (answer.status, answer.json["error"]["code"]) == (408, "too_slow")
        assert slow.is_closed()
        assert silent.is_closed()  # without an answer to what it never asked


def test_a_body_that_does_not_arrive_is_408(open_service: Open) -> None:
    service = open_service(connections=ConnectionLimits(body_seconds=0.2))
    for begun in (WITH_BODY + EVENT[:-1], POST + b"Transfer-Encoding: chunked\r\n\r\n1\r\n[\r\n"):
        with Raw(service.url) as slow:
            answer = slow.send(begun).answer()
            assert (answer.status, answer.json["error"]["code"]) == (408, "too_slow")
            assert slow.is_closed()
    assert 'felrec_refused_requests_total{status="408"} 2.0' in service.get("/metrics").text


def test_a_slow_body_that_keeps_coming_is_accepted(open_service: Open) -> None:
    service = open_service(connections=ConnectionLimits(body_seconds=1, body_bytes=1))
    with Raw(service.url) as slow:
        slow.send(WITH_BODY)
        for byte in EVENT:
            time.sleep(0.1)
            slow.send(bytes([byte]))
        assert slow.answer().json["accepted"] == 1


def test_idle_connections_are_closed(open_service: Open) -> None:
    service = open_service(connections=ConnectionLimits(keep_alive_seconds=0.2))
    early = POST.replace(b"json", b"xml") + b"Content-Length: 1\r\n\r\n"
    with Raw(service.url) as asked, Raw(service.url) as refused:
        assert asked.send(GET).answer().status == 200
        assert asked.is_closed()
        assert refused.send(early).answer().status == 415
        assert refused.send(b"x").is_closed()


def test_a_client_that_never_reads_is_cut(open_service: Open) -> None:
    service = open_service(connections=ConnectionLimits(answer_seconds=0.2))
    with Raw(service.url, receive_buffer=4096) as client:
        client.flood(PAGES, 10**6)
        assert client.hangs_up()


def test_slow_bodies_leave_room_for_others(open_service: Open, tmp_path: Path) -> None:
    keys = KeyFile(tmp_path / "keys.json")
    (reader, _), (writer, _) = keys.add(["read"]), keys.add(["write"])
    service = open_service(keys=keys, hosts=None)
    begun = SESSION + f"Authorization: Bearer {reader}\r\nContent-Length: 100\r\n\r\n{{".encode()
    with ExitStack() as stack:
        slow = [stack.enter_context(Raw(service.url)).send(begun) for _ in range(MAX_REQUESTS + 50)]
        assert service.get("/v1/stats", headers=_headers(reader)).status_code == 200
        for path, key, body in (("recommendations", reader, b'{"items": ["1"]}'), ("interactions", writer, EVENT)):
            assert service.post(f"/v1/{path}", content=body, headers=_headers(key)).status_code == 200
        cut = slow[0].answer()
        assert (cut.status, cut.headers["retry-after"]) == (429, "1")


def test_large_slow_bodies_leave_room_for_others(open_service: Open) -> None:
    service = open_service()
    begun = SESSION + b"Content-Length: %d\r\n\r\n" % MAX_BODY + b" " * (MAX_BODY - 1)
    with ExitStack() as stack:
        slow = [stack.enter_context(Raw(service.url)).send(begun) for _ in range(MAX_BODIES // MAX_BODY + 2)]
        body = b" " * (MAX_BODY // 2) + b'{"items": ["1"]}'
        assert service.post("/v1/recommendations", content=body, headers=_headers()).status_code == 200
        assert slow[0].answer().status == 429


def _headers(key: str = "") -> dict[str, str]:
    return {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})


def test_incomplete_requests_cannot_use_up_what_is_admitted() -> None:
    assert DEFAULT_LIMITS.incomplete_requests < MAX_REQUESTS
    assert DEFAULT_LIMITS.incomplete_bytes + MAX_BODY < MAX_BODIES
    assert DEFAULT_LIMITS.discarded_bytes > 2 * MAX_BODY


def test_a_new_connection_takes_the_place_of_the_one_idle_longest(open_service: Open) -> None:
    service = open_service(connections=ConnectionLimits(total=20))
    gate = Gate(service)
    with ExitStack() as stack:
        answered = stack.enter_context(gate.ask(service.url))  # the oldest, but it does not wait for its client
        idle = [stack.enter_context(Raw(service.url)).send(GET[:n]) for n in range(40)]
        assert httpx.get(f"{service.url}/healthz").status_code == 200
        assert idle[0].is_closed()
        assert idle[5].answer().status == 429  # it had begun to send
        assert idle[-1].send(GET[39:]).answer().status == 200
        gate.open()
        assert answered.answer().status == 200


def test_health_is_answered_while_all_connections_are_being_answered(open_service: Open) -> None:
    service = open_service(connections=ConnectionLimits(total=4))
    gate = Gate(service)
    with ExitStack() as stack:
        busy = [stack.enter_context(gate.ask(service.url)) for _ in range(8)]
        for path in ("/healthz", "/readyz"):
            assert httpx.get(f"{service.url}{path}").status_code == 200
        gate.open()
        answers = [client.answer() for client in busy]
        assert {answer.status for answer in answers} == {200}
        assert "close" in {answer.headers.get("connection") for answer in answers}


def test_one_address_cannot_take_all_connections(open_service: Open) -> None:
    service = open_service(connections=ConnectionLimits(total=50, per_address=5))
    gate = Gate(service)
    with ExitStack() as stack:
        other = stack.enter_context(Raw(service.url)).send(GET[:5])
        many = [stack.enter_context(Raw(service.url, "127.0.0.2")) for _ in range(15)]
        assert many[9].is_closed()
        assert many[10].send(GET).answer().status == 200
        assert other.send(GET[5:]).answer().status == 200
        for _ in range(3):
            stack.enter_context(gate.ask(service.url))
        with Raw(service.url) as fifth:  # beside the client of the fixture, `other`, and the three
            assert fifth.send(GET).answer().status == 200
        gate.open()


def test_the_default_per_address_spares_a_proxy_on_this_machine() -> None:
    assert ConnectionLimits().of("192.0.2.7") < ConnectionLimits().total
    assert ConnectionLimits().of("127.0.0.1") == ConnectionLimits().of("::1") > ConnectionLimits().total
    assert ConnectionLimits(per_address=7).of("127.0.0.1") == 7


@contextmanager
def descriptors(soft: int) -> Iterator[None]:
    """Let this process and those that it starts open few files, until they ask for more."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_idle_connections_do_not_use_up_file_descriptors(run: Path, tmp_path: Path) -> None:
    with ExitStack() as stack:
        with descriptors(200):
            running = stack.enter_context(start(run, tmp_path / "s", "--max-connections", 250))
        for _ in range(400):
            stack.enter_context(Raw(running.url)).send(b"GET")
        for path in ("/healthz", "/readyz"):
            assert httpx.get(f"{running.url}{path}").status_code == 200


def test_more_connections_than_the_system_allows_are_refused_at_once() -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with pytest.raises(ConfigError, match="raise the limit"):
        allow_connections(hard)


def test_slow_clients_do_not_keep_the_service_from_stopping(run: Path, tmp_path: Path) -> None:
    with start(run, tmp_path / "store.sqlite") as running, ExitStack() as stack:
        for number in range(60):
            stack.enter_context(Raw(running.url)).send((b"", GET[:-2], WITH_BODY + EVENT[:-1])[number % 3])
        stack.enter_context(Raw(running.url, receive_buffer=4096)).flood(PAGES, 10**6)
        assert httpx.get(f"{running.url}/healthz").status_code == 200
        assert running.stop() == 0
        said = [json.loads(line)["message"] for line in running.errors.read_text().splitlines()]
    assert "stopping" in said
    assert not [line for line in said if "timeout graceful shutdown exceeded" in line]


def test_a_stop_finishes_complete_requests_and_cuts_the_others(open_service: Open) -> None:
    service = open_service()
    gate = Gate(service)
    with gate.ask(service.url) as complete, Raw(service.url) as incomplete, Raw(service.url) as idle:
        incomplete.send(WITH_BODY + EVENT[:-1])
        assert idle.send(GET).answer().status == 200
        stopping = threading.Thread(target=service.stop)
        stopping.start()
        assert incomplete.answer().status == 503
        assert idle.is_closed()
        gate.open()
        answer = complete.answer()
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        stopping.join(60)
        assert not stopping.is_alive()
