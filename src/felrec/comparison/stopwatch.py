"""The CPU time that a run takes, added up in a file over all the processes that worked on it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from felrec.comparison.progress import TrainingListener
from felrec.files import write_atomically

COST = "cost.json"
_SAVED_EVERY = 5.0  # seconds; what a killed process does not get to write is lost


class Stopwatch:
    """A listener that counts CPU time and passes everything on; two busy threads make two seconds in one."""

    def __init__(self, run: Path, listener: TrainingListener) -> None:
        self.run, self.listener = run, listener
        self.cost = {"train_seconds": 0.0, "train_events": 0, "validation_seconds": 0.0, **read_cost(run)}
        self._since, self._saved = time.process_time(), time.monotonic()

    def __call__(self, events: int, /) -> None:
        """A model without gradients applied events."""
        self._add("train_seconds", events)
        self.listener(events)

    def step(self, *, epoch: int, step: int, steps: int, events: int, loss: float, lr: float) -> None:
        """After a step."""
        self._add("train_seconds", events)
        self.listener.step(epoch=epoch, step=step, steps=steps, events=events, loss=loss, lr=lr)

    def validated(self, *, epoch: int, step: int, steps: int, metrics: dict[str, float], best: bool) -> None:
        """After a validation and its checkpoint."""
        self._add("validation_seconds")
        self.listener.validated(epoch=epoch, step=step, steps=steps, metrics=metrics, best=best)

    def _add(self, kind: str, events: int = 0) -> None:
        now = time.process_time()
        self.cost[kind] += now - self._since
        self.cost["train_events"] += events
        self._since = now
        if time.monotonic() - self._saved > _SAVED_EVERY:
            self.save()

    def save(self) -> None:
        """Write what was counted so far."""
        write_atomically(self.run / COST, json.dumps(self.cost) + "\n")
        self._saved = time.monotonic()


@contextmanager
def timed(run: Path, listener: TrainingListener) -> Iterator[Stopwatch]:
    """Count the work on a run, and save the count whatever happens."""
    stopwatch = Stopwatch(run, listener)
    try:
        yield stopwatch
    finally:
        if run.is_dir():  # a run that could not begin has no folder
            stopwatch.save()


def read_cost(run: Path) -> dict[str, Any]:
    """What a run has cost so far; empty if it was not counted."""
    try:
        cost: dict[str, Any] = json.loads((run / COST).read_text())
    except FileNotFoundError:
        return {}
    return cost
