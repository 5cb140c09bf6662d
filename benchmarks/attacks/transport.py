"""Attacks below HTTP's meaning, without a key: headers without end, pipelining, slow clients."""

from __future__ import annotations

import resource
import select
import socket
import subprocess
import time
from contextlib import ExitStack, suppress

from attacks.load import Prober, at_rest
from attacks.target import Code, Service
from attacks.verdict import Attack, Finding, in_time, judge

STEP = 8_192  # bytes sent before looking for an answer
PATIENT = 65_536 + STEP  # bytes after which an answer must come
FLAT = 32.0  # megabytes of growth that may be noise
GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"


def endless_headers(code: Code) -> Finding:
    size = 2**20 if code.quick else 64 * 2**20
    with code.folder() as folder, code.serving(folder / "store.sqlite") as service:
        before, rest = service.memory(), at_rest(service)
        with Prober(service, "/healthz") as probe:
            sent, answer = _send_headers(service, size, b"X-Header: " + b"a" * 1_000 + b"\r\n")
            one, line = _send_headers(service, size, b"a" * 1_012)
        growth = service.peak() - before
    return judge(
        _closed(sent, answer),
        _closed(one, line, "one header without end"),
        (f"memory + {growth:.0f} MB", growth <= FLAT),
        (
            f"worst /healthz {1e3 * probe.worst:.0f} ms, at rest {1e3 * rest:.0f}",
            in_time(code, probe.worst, max(0.5, 2 * rest)),
        ),
    )


def _closed(sent: int, answer: bytes, what: str = "headers without end") -> tuple[str, bool]:
    status = answer[9:12].decode() if answer.startswith(b"HTTP/1.1 ") else "no answer"
    return f"{what}: {status} after {sent / 1024:,.0f} KiB", status == "431" and sent <= PATIENT


def _send_headers(service: Service, most: int, part: bytes) -> tuple[int, bytes]:
    """Send a head that does not end; the bytes sent until the service closed, and its answer."""
    with service.connect() as connection:
        connection.sendall(GET)
        sent, chunk = 0, (part * (STEP // len(part) + 1))[:STEP]
        if not part.endswith(b"\n"):
            connection.sendall(b"X-Header: ")
        with suppress(OSError):
            while sent < most:
                connection.sendall(chunk)
                sent += STEP
                wait = 3 if sent == PATIENT else 0  # because buffers hide where it was closed
                if select.select([connection], [], [], wait)[0]:
                    break
        connection.settimeout(2)
        try:
            return sent, connection.recv(65_536)
        except OSError:
            return sent, b""


def pipelining(code: Code) -> Finding:
    requests = 100_000 if code.quick else 1_000_000
    batch = (GET + b"\r\n") * 1_000
    with code.folder() as folder, code.serving(folder / "store.sqlite") as service:
        rest, before, sent, deadline = at_rest(service), service.memory(), 0, time.monotonic() + 60
        with Prober(service, "/healthz") as probe, service.connect(seconds=5) as connection:
            with suppress(OSError):
                while sent < requests and time.monotonic() < deadline:
                    connection.sendall(batch)
                    sent += 1_000
            time.sleep(2)
            growth = service.peak() - before
        after = service.seconds("/healthz")
    return judge(
        (f"{sent:,} requests sent until the service stopped reading", True),
        (f"memory + {growth:.0f} MB", growth <= FLAT),
        (
            f"worst /healthz {1e3 * probe.worst:.0f} ms, at rest {1e3 * rest:.0f}",
            in_time(code, probe.worst, max(1, 2 * rest)),
        ),
        (f"afterwards {1e3 * after:.0f} ms", in_time(code, after, 1)),
    )


def slow_clients(code: Code) -> Finding:
    """Idle connections, half headers and slow bodies at once, from other addresses than the ordinary client's."""
    each = 30 if code.quick else 300
    with code.folder() as folder, ExitStack() as held:
        keys = folder / "keys.json"
        ours, theirs = code.key(keys, "read", "write"), code.key(keys, "read")
        with code.serving(folder / "store.sqlite", "--keys", keys) as service:
            service.key = ours
            service.post_all([{"user": f"u{n}", "item": f"i{n % 7}"} for n in range(50)])
            slow = [_open(held, service, b"", "127.0.0.2") for _ in range(each)]
            slow += [_open(held, service, GET, "127.0.0.3") for _ in range(each)]
            head = _slow_head(theirs)
            bodies = [_open(held, service, head, "127.0.0.4") for _ in range(each)]
            time.sleep(1)  # until all of them are in flight
            statuses, taken = [], []
            for _ in range(5 if code.quick else 20):
                for path in ("/healthz", "/v1/users/u1/recommendations", "/v1/stats"):
                    began = time.perf_counter()
                    statuses.append(service.status("GET", path, seconds=10))
                    taken.append(time.perf_counter() - began)
                statuses.append(service.status("POST", "/v1/interactions", {"user": "u1", "item": "i1"}, seconds=10))
                _trickle(bodies)
            kept = sum(_is_open(connection) for connection in slow + bodies)
            stopped = service.stop(45)
    others = sum(status != 200 for status in statuses)
    return judge(
        (f"{others} of {len(statuses)} ordinary requests refused", others == 0),
        (f"worst {max(taken):.2f} s", in_time(code, max(taken), 2)),
        (f"{kept} of {len(slow) + len(bodies)} slow connections still open then", True),
        (f"stop under this load in {stopped:.1f} s", in_time(code, stopped, 5)),
    )


def _slow_head(key: str) -> bytes:
    return (
        f"POST /v1/recommendations HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n"
        "Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n{"
    ).encode()


def _open(held: ExitStack, service: Service, first: bytes, source: str) -> socket.socket:
    connection = held.enter_context(service.connect(source))
    with suppress(OSError):
        connection.sendall(first)
    return connection


def _trickle(connections: list[socket.socket]) -> None:
    for connection in connections:
        with suppress(OSError):
            connection.sendall(b" ")


def _is_open(connection: socket.socket) -> bool:
    """Whether the service has not closed a connection."""
    connection.settimeout(0)
    try:
        while got := connection.recv(4_096):
            del got
        return False
    except BlockingIOError:
        return True
    except OSError:
        return False


def many_connections(code: Code) -> Finding:
    """As many connections as this process may open, from one address and from twenty."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    wanted = 2_000
    bound = "--max-connections-per-address"  # must be asked for on loopback, where a proxy may run
    options = (bound, 100) if code.serves(bound) else ()
    with code.folder() as folder, code.serving(folder / "store.sqlite", *options) as service:
        one = _held(service, wanted, 1)
        many = _held(service, wanted, 20)
    return judge(
        (f"of {wanted:,} idle connections of one address {one[0]:,} stay open", one[0] <= 256),
        (f"of {wanted:,} of twenty {many[0]:,}", many[0] <= 1_100),
        (
            f"/healthz of another address meanwhile {1e3 * max(one[1], many[1]):.0f} ms",
            in_time(code, max(one[1], many[1]), 1),
        ),
    )


def _held(service: Service, wanted: int, addresses: int) -> tuple[int, float]:
    with ExitStack() as held:
        connections = []
        for number in range(wanted):
            with suppress(OSError):
                connections.append(_open(held, service, b"", f"127.0.1.{1 + number % addresses}"))
        time.sleep(0.5)
        return sum(map(_is_open, connections)), service.seconds("/healthz")


def full_stderr_pipe(code: Code) -> Finding:
    """Nobody reads the log: a pipe to a process that hangs."""
    requests = 600 if code.quick else 2_000
    with code.folder() as folder, code.serving(folder / "store.sqlite", stderr=subprocess.PIPE) as service:
        answered = 0
        for _ in range(requests):
            if service.status("GET", "/v1/stats", seconds=5) != 200:
                break
            answered += 1
        stopped = service.stop(20)
        if service.process.stderr is not None:
            service.process.stderr.close()
    return judge(
        (f"{answered:,} of {requests:,} requests answered", answered == requests),
        (f"stop in {stopped:.1f} s", in_time(code, stopped, 10)),
    )


ATTACKS = (
    Attack(
        "headers",
        "request headers without end, without a key",
        "431 and closed at 64 KiB, memory flat, /healthz ≤ 500 ms",
        endless_headers,
    ),
    Attack(
        "pipelining",
        "a million pipelined requests whose answers are never read, without a key",
        f"memory + ≤ {FLAT:.0f} MB, /healthz ≤ 1 s",
        pipelining,
    ),
    Attack(
        "slow",
        "300 idle connections, 300 half headers, 300 slow bodies with a read key",
        "ordinary requests answered within 2 s, stop ≤ 5 s",
        slow_clients,
    ),
    Attack(
        "connections",
        "2,000 idle connections of one address, and of twenty",
        "≤ 256 per address, ≤ 1,100 in all, /healthz ≤ 1 s",
        many_connections,
    ),
    Attack(
        "stderr-pipe",
        "2,000 requests while nobody reads the log",
        "all answered, stop ≤ 10 s",
        full_stderr_pipe,
    ),
)
