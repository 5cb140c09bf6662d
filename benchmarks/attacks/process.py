"""Attacks on the process: stopped in its tracks, killed under load."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections import Counter
from contextlib import suppress

from attacks.load import made_up_events
from attacks.target import Code, Service
from attacks.verdict import Attack, Finding, judge

PAST = 1_650_000_000  # so that answers do not depend on how long ago the last event was


def frozen(code: Code) -> Finding:
    """SIGSTOP in the middle of posts, SIGCONT later."""
    with code.folder() as folder, code.serving(folder / "store.sqlite") as service:
        with Posting(service) as posting:
            for _ in range(2 if code.quick else 5):
                time.sleep(0.5)
                service.process.send_signal(signal.SIGSTOP)
                time.sleep(0.5 if code.quick else 2)
                service.process.send_signal(signal.SIGCONT)
            time.sleep(0.5)
        events = service.stats()["events"]
    return judge(
        (f"{posting.accepted:,} events acknowledged, {events:,} there", events == posting.accepted),
        (f"statuses {sorted(posting.statuses)}", set(posting.statuses) == {200}),
    )


def killed(code: Code) -> Finding:
    """Kill -9 under load: after the restart nothing is lost, nothing is twice, and answers are as before."""
    rounds, lost, unequal, total = 1 if code.quick else 5, 0, 0, 0
    with code.folder() as folder:
        store = folder / "store.sqlite"
        with code.serving(store) as service:
            service.post_all(made_up_events(1_000))
            service.kill()
        for number in range(rounds):
            with code.serving(store) as service:
                began = service.stats()["events"]
                with Posting(service, f"k{number}") as posting:
                    time.sleep(0.5 + 0.3 * number)
                    service.kill()
            with code.serving(store) as service:
                there = service.stats()["events"] - began
                lost += not posting.accepted <= there <= posting.accepted + posting.unanswered
                total += posting.accepted
                before = _answers(service)
                service.kill()
            with code.serving(store) as service:
                unequal += sum(one != other for one, other in zip(before, _answers(service), strict=True))
    return judge(
        (f"{rounds} kills, {total:,} events acknowledged: {lost} times lost or twice", lost == 0),
        (f"{unequal} answers of {40 * rounds} differ after another restart", unequal == 0),
    )


class Posting:
    """Posts 20 events at a time from four threads, each with its own key, and counts what is acknowledged."""

    def __init__(self, service: Service, name: str = "p") -> None:
        self.service, self.name = service, name
        self.accepted = self.unanswered = 0
        self.statuses = Counter[int]()
        self._done, self._lock = threading.Event(), threading.Lock()

    def __enter__(self) -> Posting:
        self._threads = [threading.Thread(target=self._run, args=(n,), daemon=True) for n in range(4)]
        for thread in self._threads:
            thread.start()
        return self

    def _run(self, number: int) -> None:
        for count in range(100_000):
            if self._done.is_set():
                return
            user = f"{self.name}{number}"
            rows = [{"user": user, "item": f"i{(count + n) % 50}", "timestamp": PAST + count} for n in range(20)]
            with self._lock:
                self.unanswered += 20
            with suppress(OSError, ValueError):
                answer = self.service.post(rows, {"Idempotency-Key": f"{self.name}-{number}-{count}"})
                with self._lock:
                    self.statuses[answer.status] += 1
                    self.unanswered -= 20
                    self.accepted += answer.json().get("accepted", 0)
                continue
            return

    def __exit__(self, *_: object) -> None:
        self._done.set()
        for thread in self._threads:
            thread.join(60)


def _answers(service: Service) -> list[str]:
    told = [service.get(f"/v1/users/u{n}/recommendations").json() for n in range(40)]
    return [json.dumps({**answer, "milliseconds": 0}) for answer in told]


ATTACKS = (
    Attack("frozen", "SIGSTOP and SIGCONT five times under load", "nothing lost, nothing refused", frozen),
    Attack(
        "kill",
        "kill -9 five times under load",
        "nothing acknowledged lost, nothing twice, equal answers after another restart",
        killed,
        480,
    ),
)
