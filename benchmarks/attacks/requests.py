"""Odd requests: hosts, paths, scopes and request smuggling."""

from __future__ import annotations

import re
import socket
from contextlib import suppress

from attacks.target import Code, Service
from attacks.verdict import Attack, Finding, judge

VICTIM = "/v1/users/victim"
INNER = f"DELETE {VICTIM} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
BODY = '{"user":"u","item":"i"}'


def _raw(service: Service, request: str, seconds: float = 1.0) -> list[int]:
    """The statuses of all answers to these bytes."""
    got = b""
    with service.connect(seconds=seconds) as connection, suppress(OSError):
        connection.sendall(request.encode("latin-1"))
        connection.shutdown(socket.SHUT_WR)
        while part := connection.recv(65_536):
            got += part
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", got)]


def _head(*lines: str, start: str = "POST /v1/interactions HTTP/1.1") -> str:
    return "\r\n".join([start, "Host: localhost", "Content-Type: application/json", *lines, "", ""])


def smuggling(code: Code) -> Finding:
    """Requests whose end a proxy and the service could see in different places; the rest would erase a user."""
    chunked, length = "Transfer-Encoding: chunked", f"Content-Length: {len(BODY)}"
    tricks = {
        "CL.TE": _head(f"Content-Length: {5 + len(INNER)}", chunked) + "0\r\n\r\n" + INNER,
        "TE.CL": _head(chunked, "Content-Length: 4") + "0\r\n\r\n" + INNER,
        "two lengths": _head(length, "Content-Length: 3") + BODY + INNER,
        "list of lengths": _head(f"Content-Length: {len(BODY)}, 3") + BODY + INNER,
        "signed length": _head(f"Content-Length: +{len(BODY)}") + BODY + INNER,
        "hexadecimal length": _head("Content-Length: 0x17") + BODY + INNER,
        "negative length": _head("Content-Length: -1") + INNER,
        "huge length": _head("Content-Length: 18446744073709551617") + INNER,
        "space before colon": _head("Content-Length : 3") + BODY + INNER,
        "folded header": _head("X-Header: a\r\n Content-Length: 3", length) + BODY[:3] + INNER,
        "chunked twice": _head("Transfer-Encoding: chunked, identity") + "0\r\n\r\n" + INNER,
        "unknown coding": _head("Transfer-Encoding: xchunked", "Content-Length: 0") + INNER,
        "huge chunk": _head(chunked) + "FFFFFFFFFFFFFFFFF\r\n" + INNER,
        "bare line feeds": _head(chunked).replace("\r\n", "\n") + "0\n\n" + INNER,
        "NUL in a header": _head("X-Header: a\0b", "Content-Length: 0") + INNER,
        "bare carriage return": _head("X-Header: a\rContent-Length: 3") + INNER,
        "HTTP/0.9": "GET /v1/stats\r\n\r\n" + INNER,
        "HTTP/2 preface": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + INNER,
        "upgrade": _head("Connection: Upgrade", "Upgrade: h2c", start="GET /v1/stats HTTP/1.1") + "x" + INNER,
    }
    checks = []
    with code.folder() as folder, code.serving(folder / "store.sqlite") as service:
        service.post_all([{"user": "victim", "item": "i"}])
        for what, request in tricks.items():
            statuses = _raw(service, request)
            there = service.get(VICTIM).status == 200
            if len(statuses) > 1 or not there or any(status >= 500 for status in statuses):
                checks.append((f"{what}: answers {statuses}, the user is {'there' if there else 'erased'}", False))
                service.post_all([{"user": "victim", "item": "i"}])
    return judge((f"{len(tricks) - len(checks)} of {len(tricks)} tricks refused or seen as one request", True), *checks)


def hosts(code: Code) -> Finding:
    """DNS rebinding: a service without keys must only answer to names of this machine."""
    foreign = ("evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "localhost@evil.example", "0.0.0.0")
    odd = ("", "[::1", "localhost:x", "LOCALHOST:8000", "127.1", "[::1]:80", "localhost\t", "xn--lcalhost-54a")
    with code.folder() as folder, code.serving(folder / "store.sqlite") as service:
        refused = {host: _raw(service, f"GET /v1/stats HTTP/1.1\r\nHost: {host}\r\n\r\n") for host in foreign}
        others = {host: _raw(service, f"GET /v1/stats HTTP/1.1\r\nHost: {host}\r\n\r\n") for host in odd}
        none = _raw(service, "GET /v1/stats HTTP/1.1\r\n\r\n")
    let_in = [host for host, statuses in refused.items() if 200 in statuses]
    crashed = [host for host, statuses in others.items() if any(status >= 500 for status in statuses)]
    return judge(
        (f"{len(foreign)} foreign hosts, let in: {', '.join(let_in) or 'none'}", not let_in),
        (
            f"{len(odd)} odd ones, 5xx: {', '.join(crashed) or 'none'}; without a host {none}",
            not crashed and 200 not in none,
        ),
    )


PATHS = (
    "/static/../../../etc/passwd",
    "/static/%2e%2e/%2e%2e/etc/passwd",
    "/static/..%2f..%2fetc/passwd",
    "/static/%00",
    "/static/....//....//etc/passwd",
    "/static//etc/passwd",
    "/static/C:%5cboot.ini",
    "//evil.example/",
    "/%2e/healthz",
    "/v1/users/%00",
    "/v1/users/%ff%fe",
    "/v1/users/%",
    "/v1/users/%zz",
    "/v1/users/a%2Frecommendations",
    "/v1//users/a",
    "/v1/users/" + "a" * 5_000,
    "/v1/users/" + "%2F" * 1_000,
    "/v1/stats;x=1",
    "/v1/stats%20",
    "/v1/stats/",
    "/V1/STATS",
    "/v1/users/a/recommendations?k=99999999999999999999",
    "/v1/users/a/recommendations?k=1&k=2",
    "/?" + "a=b&" * 5_000,
    "/v1/users/a/recommendations?candidates=" + "a," * 12_000,
    "http://evil.example/v1/stats",
    "*",
    "/v1/items?prefix=%00",
)


def paths(code: Code) -> Finding:
    with code.folder() as folder, code.serving(folder / "store.sqlite") as service:
        found = {
            path: _raw(service, f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            for path in PATHS
        }
        leaked = [path for path in PATHS if _leaks(service, path)]
    crashed = [path[:40] for path, statuses in found.items() if any(status >= 500 for status in statuses)]
    return judge(
        (f"{len(PATHS)} paths, 5xx: {', '.join(crashed) or 'none'}", not crashed),
        (f"files of the system: {', '.join(leaked) or 'none'}", not leaked),
    )


def _leaks(service: Service, path: str) -> bool:
    with service.connect(seconds=2) as connection, suppress(OSError):
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        return b"root:" in connection.recv(65_536)
    return False


def scopes(code: Code) -> Finding:
    """What a key without the right to write, and no key, can do by another method or spelling."""
    with code.folder() as folder:
        keys = folder / "keys.json"
        ours, reader, writer = (code.key(keys, *scopes) for scopes in (("read", "write"), ("read",), ("write",)))
        with code.serving(folder / "store.sqlite", "--keys", keys) as service:
            service.key = ours
            service.post_all([{"user": "victim", "item": "i"}])
            began = service.stats()["events"]
            wrong = [text for key in (reader, "", "x", "felrec_" + "a" * 60) for text in _writes(service, key)]
            wrong += [text for key in (writer, "", "x") for text in _reads(service, key)]
            events, victim = service.stats()["events"], service.get(VICTIM).status
    return judge(
        (f"let through: {', '.join(wrong[:3]) or 'nothing'}", not wrong),
        (
            f"{events - began} events more, the user is {'there' if victim == 200 else 'erased'}",
            events == began and victim == 200,
        ),
    )


def _writes(service: Service, key: str) -> list[str]:
    methods = ("POST", "post", "PUT", "PATCH", "DELETE", "delete", "HEAD", "OPTIONS", "TRACE", "CONNECT", "GETX")
    targets = (
        "/v1/interactions",
        "/v1/interactions/",
        "/v1/Interactions",
        "//v1/interactions",
        "/v1/recommendations/../interactions",
        "/v1/items/i",
        VICTIM,
        "/static/../v1/users/victim",
        "/healthz/../v1/users/victim",
        "/v1/%75sers/victim",
    )
    extra = f"Authorization: Bearer {key}\r\nX-HTTP-Method-Override: DELETE\r\nX-Original-URL: /healthz\r\n"
    head = f"Host: localhost\r\n{extra}Content-Type: application/json\r\nContent-Length: {len(BODY)}\r\n\r\n{BODY}"
    let = []
    for method in methods:
        for target in targets:
            statuses = _raw(service, f"{method} {target} HTTP/1.1\r\nConnection: close\r\n{head}")
            reading = method in ("HEAD", "OPTIONS") or "static" in target
            refused = {501} if method == "CONNECT" else set()  # there is no tunnel here
            if any(status >= 500 or (status in (200, 204) and not reading) for status in {*statuses} - refused):
                let.append(f"{method} {target} {statuses}")
    return let


def _reads(service: Service, key: str) -> list[str]:
    targets = (
        "/v1/stats",
        "/metrics",
        "/v1/users",
        "/v1/users/victim",
        "/v1/map",
        "/v1/users/victim/recommendations",
        "/static/../v1/stats",
        "/static/%2e%2e/v1/stats",
        "/v1/stats?x=/static/",
        "/healthz/../v1/stats",
    )
    let = []
    for method in ("GET", "HEAD", "get"):
        for target in targets:
            head = f"{method} {target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: bearer {key}"
            statuses = _raw(service, f"{head}\r\nConnection: close\r\n\r\n")
            if any(status == 200 or status >= 500 for status in statuses):
                let.append(f"{method} {target}")
    return let


ATTACKS = (
    Attack(
        "smuggling",
        "requests whose end two parsers could see in different places",
        "refused, or one request",
        smuggling,
    ),
    Attack("hosts", "foreign and odd host names, without keys", "foreign ones are refused, no 5xx", hosts),
    Attack("paths", "paths with .., %2F, %00 and the like", "no file of the system, no 5xx", paths),
    Attack(
        "scopes", "writing with a read key, reading with a write key, by other methods and spellings", "nothing", scopes
    ),
)
