"""Ordinary use of a service while it is attacked."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

from attacks.target import Row, Service
from felrec.data.synthetic import synthetic_log

FEWEST = 5  # answers, however short an attack is


@dataclass
class Prober:
    """Asks one path again and again from a thread, and keeps how long each answer took."""

    service: Service
    path: str
    every: float = 0.05
    taken: list[float] = field(default_factory=list)

    def __enter__(self) -> Prober:
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def _run(self) -> None:
        while not self._done.wait(self.every) or len(self.taken) < FEWEST:
            self.taken.append(self.service.seconds(self.path))

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join(60)

    @property
    def worst(self) -> float:
        """The longest; infinite if one was not answered."""
        return max(self.taken, default=float("inf"))


def at_rest(service: Service, times: int = 60) -> float:
    """The longest of some answers without an attack: on a busy machine that may be long too."""
    service.seconds("/healthz")  # the first answer of a new process takes longest
    taken = []
    for _ in range(times):
        taken.append(service.seconds("/healthz"))
        time.sleep(0.05)
    return max(taken)


def made_up_events(count: int, users: int = 200, items: int = 300, seed: int = 1) -> list[Row]:
    """Events of users with tastes, in 2020."""
    log = synthetic_log(count, n_users=users, n_items=items, seed=seed).log
    columns = log.users.tolist(), log.items.tolist(), log.times.tolist()
    return [{"user": f"u{u}", "item": f"i{i}", "timestamp": t} for u, i, t in zip(*columns, strict=True)]
