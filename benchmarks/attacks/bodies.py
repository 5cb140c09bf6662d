"""Odd bodies: some 220 that are no good events, attributes or sessions, and ids nobody would think of."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from urllib.parse import quote

from attacks.target import Code, Service
from attacks.verdict import Attack, Finding, judge

EVENTS, SESSION, ITEM = ("POST", "/v1/interactions"), ("POST", "/v1/recommendations"), ("PUT", "/v1/items/odd")
LINES = {"Content-Type": "application/x-ndjson"}
WRONG = (
    "null",
    "true",
    "1",
    "1.5",
    '""',
    '"x"',
    "[]",
    "[[]]",
    "{}",
    '{"x": 1}',
    "[null]",
    '["x"]',
    "[1]",
    "-0",
    "1e400",
)
NAMES = ('""', "null", "true", "1.5", "[]", "{}", "1e400", "-1", '"\\u0000"', '"\\ud800"', '"a\\ud83d"', '" "', '"\\n"')
TIMES = (
    "null",
    "true",
    '""',
    '"x"',
    "-1",
    "1e18",
    "1e400",
    "99999999999999999999",
    "[]",
    "{}",
    '"2026-13-01"',
    '"0000"',
)
NUMBERS = ("9" * 400, "9" * 5_000, "1" + "0" * 100_000, "0." + "1" * 100_000, "1e999999999", "-" + "9" * 5_000)
UNICODE = (
    "é",
    "e\N{COMBINING ACUTE ACCENT}",
    "\N{RIGHT-TO-LEFT OVERRIDE}x",
    "\N{ZERO WIDTH JOINER}",
    "𝕏" * 256,
    "𝕏" * 257,
    "..",
    ".",
    "%2F",
    "a/b",
    "a?b",
    "a#b",
    "a b",
    "a+b",
    "CON",
    "' OR 1=1 --",
    "<script>",
    "${7*7}",
    "\N{LINE SEPARATOR}",
)

Body = tuple[tuple[str, str], bytes, dict[str, str]]


def odd_bodies() -> Iterator[Body]:
    """Every odd body, with its route and its headers."""
    for route in (EVENTS, SESSION, ITEM):
        for text in (
            *WRONG,
            *NUMBERS,
            "",
            " ",
            "\ufeff{}",
            "{",
            '{"user"',
            "NaN",
            "Infinity",
            "-Infinity",
            "'x'",
            "// x",
        ):
            yield route, text.encode(), {}
        yield route, b"\xff\xfe\x00", {}
        yield route, b'{"title": "\xed\xa0\x80", "user": "\xc0\xaf", "item": "x"}', {}
        for depth in (100, 1_000, 100_000, 2_000_000):
            yield route, b"[" * depth, {}
            yield route, b'{"a":' * depth, {}
        yield route, b"{}", {"Content-Encoding": "gzip"}
        yield route, gzip.compress(b" " * 10_000_000), {"Content-Encoding": "gzip"}
        yield route, b"{}", {"Content-Type": "text/plain"}
        yield route, b"{}", {"Content-Type": "application/json; charset=utf-16"}
        yield route, b"{}", {"Content-Encoding": "br, gzip"}
    for name in (*NAMES, *NUMBERS):
        yield EVENTS, f'{{"user": {name}, "item": "i"}}'.encode(), {}
        yield EVENTS, f'{{"user": "u", "item": {name}}}'.encode(), {}
        yield SESSION, f'{{"items": [{name}], "k": {name}}}'.encode(), {}
        yield ITEM, f'{{"title": {name}, "tags": [{name}]}}'.encode(), {}
    for moment in TIMES:
        yield EVENTS, f'{{"user": "u", "item": "i", "timestamp": {moment}}}'.encode(), {}
    yield EVENTS, b'{"user": "a", "user": "b", "item": "i"}', {}
    yield EVENTS, b'{"user": "a", "item": "i", "__proto__": {}}', {}
    yield EVENTS, json.dumps([{"user": "u", "item": "i"}] * 10_001).encode(), {}
    yield EVENTS, b"\n" * 1_000_000, LINES
    yield EVENTS, b'{"user": "u", "item": "i"}\n{', LINES
    yield EVENTS, b" " * (9 * 2**20), {}
    yield ITEM, json.dumps({"title": "x" * 1_001}).encode(), {}
    yield ITEM, json.dumps({"tags": ["x"] * 101}).encode(), {}
    yield SESSION, json.dumps({"items": ["x"] * 10_001}).encode(), {}


def bodies(code: Code) -> Finding:
    statuses, accepted, bad = Counter[int](), 0, list[str]()
    with code.folder() as folder, code.serving(folder / "store.sqlite") as service:
        before = service.memory()
        for (method, path), body, headers in odd_bodies():
            try:
                answer = service.ask(method, path, body, headers, seconds=30)
            except OSError as error:  # the service may close while a body that is too long is sent
                statuses[0] += 1
                bad += [f"{type(error).__name__} for {len(body)} bytes"] if len(body) <= 8 * 2**20 else []
                continue
            statuses[answer.status] += 1
            bad += [f"{answer.status} for {body[:40]!r}"] if answer.status >= 500 else []
            if path == EVENTS[1] and answer.status == 200:
                accepted += answer.json()["accepted"]
        events, grown = service.stats()["events"], service.memory() - before
    return judge(
        (f"{statuses.total()} bodies: {_counted(statuses)}", statuses.total() > 200),
        (f"unexpected: {', '.join(bad[:3]) or 'none'}", not bad),
        (f"{accepted} events accepted, {events} there", accepted == events),
        (f"memory + {grown:.0f} MB", grown <= 128),
    )


def _counted(statuses: Counter[int]) -> str:
    return ", ".join(f"{count} × {status or 'closed'}" for status, count in sorted(statuses.items()))


def unicode_ids(code: Code) -> Finding:
    """Ids that look alike, look dangerous or mean something in an address: each is itself and no other."""
    with code.folder() as folder:
        with code.serving(folder / "store.sqlite") as service:
            statuses = [service.post([{"user": name, "item": name}]).status for name in UNICODE]
            there = _known(service)
            service.kill()
        with code.serving(folder / "store.sqlite") as service:
            again = _known(service)
    good = [name for name, status in zip(UNICODE, statuses, strict=True) if status == 200]
    return judge(
        (f"{len(good)} of {len(UNICODE)} ids accepted, statuses {sorted(set(statuses))}", set(statuses) <= {200, 422}),
        (
            f"{len(there)} found by their address, each with one event",
            there == [n for n in good if n not in (".", "..")],
        ),
        ("the same after kill -9", again == there),
    )


def _known(service: Service) -> list[str]:
    """Which ids have exactly one event. `.` and `..` cannot be in an address: clients resolve them."""
    found = []
    for name in UNICODE:
        answer = service.get(f"/v1/users/{quote(name, safe='')}")
        if name not in (".", "..") and answer.status == 200 and len(answer.json()["history"]) == 1:
            found += [name] if answer.json()["id"] == name else []
    return found


ATTACKS = (
    Attack(
        "bodies",
        "odd bodies: nesting, huge numbers, NaN, duplicate keys, bad UTF-8, compression, wrong types, surrogates",
        "no 5xx, what is accepted is counted and nothing else",
        bodies,
    ),
    Attack("ids", "ids that look alike or dangerous", "each is itself and no other", unicode_ids),
)
