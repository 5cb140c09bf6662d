"""Attacks with time: the server's clock, times of events, and the moment of a question.

The clock is changed by a sitecustomize.py before the code on PYTHONPATH: it adds the seconds in a file to time.time.
"""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from pathlib import Path

from attacks.load import made_up_events
from attacks.target import Code, Service
from attacks.verdict import Attack, Finding, judge

DAY = 86_400
CLOCK = """
import os, time
_real, _file = time.time, os.environ["FELREC_ATTACK_CLOCK"]
def _shifted():
    with open(_file) as offset:
        return _real() + float(offset.read() or 0)
time.time = _shifted
"""


class Clock:
    """The clock of a service, which can be set while it runs."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "offset"
        self.set(0)
        code = folder / "clock"
        code.mkdir()
        (code / "sitecustomize.py").write_text(CLOCK)
        self.environment = {"python_path": str(code), "FELREC_ATTACK_CLOCK": str(self.file)}

    def set(self, days: float) -> None:
        """So many days ahead."""
        new = self.file.with_name("new")
        new.write_text(str(days * DAY))
        new.replace(self.file)


def ahead(code: Code) -> Finding:
    with code.folder() as folder:
        clock, store = Clock(folder), folder / "store.sqlite"
        with code.serving(store, environment=clock.environment) as service:
            service.post_all([{"user": f"u{n}", "item": "i1"} for n in range(20)])
            clock.set(365)
            jumped = service.post([{"user": "u1", "item": "i2"}]).status
            clock.set(0)
            now = _late(service)
            service.stop()
        with code.serving(store, environment=clock.environment) as service:
            restarted = _late(service)
        recovered = _recovered(code, folder, clock)
    return judge(
        (f"a post while the clock is a year ahead {jumped}", jumped in (200, 503)),
        (f"right again: {now} of 20 events late", now == 0),
        (f"after a restart: {restarted} of 20", restarted == 0),
        (f"the clock ahead from the start, corrected with felrec replay: {recovered}", recovered == "0 of 20 late"),
    )


def _recovered(code: Code, folder: Path, clock: Clock) -> str:
    """A service that starts with a wrong clock cannot know; whether its store can be corrected afterwards."""
    store, corrected = folder / "ahead.sqlite", folder / "corrected.sqlite"
    clock.set(365)
    with code.serving(store, environment=clock.environment) as service:
        service.post_all([{"user": f"u{n}", "item": "i1"} for n in range(20)])
        service.stop()
    clock.set(0)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    done = code.run("replay", store, "pretrained", "--out", corrected, "--latest", now)
    if done.returncode:
        return "impossible"
    with code.serving(corrected) as service:
        return f"{_late(service)} of 20 late"


def _late(service: Service) -> int:
    answers = [service.post([{"user": f"u{n}", "item": "i3"}]) for n in range(20)]
    assert all(answer.status == 200 for answer in answers), answers[0]
    return sum(answer.json()["late"] for answer in answers)


def behind(code: Code) -> Finding:
    """An idempotency key that was stored while the clock was behind must not expire when it is right again."""
    with code.folder() as folder:
        clock, store = Clock(folder), folder / "store.sqlite"
        clock.set(-2)
        with code.serving(store, environment=clock.environment) as service:
            first = service.post([{"user": "u1", "item": "i1"}], {"Idempotency-Key": "one"})
            clock.set(0)
            service.post([{"user": "u2", "item": "i2"}])
            before = service.stats()["events"]
            again = service.post([{"user": "u1", "item": "i1"}], {"Idempotency-Key": "one"})
            twice = service.stats()["events"] - before
    same = first.json() == again.json()
    return judge(
        (f"the same post again: {'the same receipt' if same else 'another receipt'}", same),
        (f"{twice} events twice", not twice),
    )


def jumps(code: Code) -> Finding:
    """Times of events that jump: long ago, ahead as far as allowed, negative, huge."""
    now = time.time()
    times: list[object] = [0, 1, now - 50 * 365 * DAY, now + 299, now, -1, now + 10_000, 1e18, 2**63, "0001-01-01", "x"]
    with code.folder() as folder, code.serving(folder / "store.sqlite") as service:
        answers = [service.post([{"user": "u1", "item": f"i{n % 3}", "timestamp": t}]) for n, t in enumerate(times)]
        accepted = sum(answer.json().get("accepted", 0) for answer in answers)
        events, top = service.stats()["events"], service.get("/v1/users/u1/recommendations").status
        service.kill()
        statuses = sorted({answer.status for answer in answers})
        with code.serving(folder / "store.sqlite") as again:
            after = again.stats()["events"]
    return judge(
        (f"statuses {statuses}", set(statuses) <= {200, 422}),
        (f"{accepted} accepted, {events} there, {after} after kill -9", accepted == events == after),
        (f"recommendations {top}", top == 200),
    )


def time_of_question(code: Code) -> Finding:
    """The same question about an old log, a minute later and without an event in between."""
    wait = 2 if code.quick else 61
    with code.folder() as folder, code.serving(folder / "store.sqlite") as service:
        service.post_all(made_up_events(3_000))
        before = _answers(service)
        time.sleep(wait)
        changed = sum(one != other for one, other in zip(before, _answers(service), strict=True))
    return judge((f"{changed} of {len(before)} answers differ after {wait} s without events", changed == 0))


def _answers(service: Service) -> list[str]:
    told = [service.get(f"/v1/users/u{n}/recommendations?k=20").json() for n in range(50)]
    return [json.dumps({**answer, "milliseconds": 0}) for answer in told]


ATTACKS = (
    Attack(
        "clock-ahead",
        "the server's clock is a year ahead for one event, then right again",
        "later events are not late, at the latest after a restart; recovery works",
        ahead,
    ),
    Attack(
        "clock-behind",
        "a post with an idempotency key while the clock is two days behind, then again",
        "the same receipt, counted once",
        behind,
    ),
    Attack("event-times", "times of events that jump or are no times", "200 or 422, nothing lost", jumps),
    Attack(
        "time-of-question",
        "the same question 61 s later, without events in between, on an old log",
        "equal in every bit",
        time_of_question,
    ),
)
