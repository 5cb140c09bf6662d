"""The CPU time of a run, summed in a file over all processes that worked on it."""

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
_SAVED_EVERY = 5.0  # seconds; a killed process loses the time since its last write


class Stopwatch:
    """A listener that measures CPU time and forwards all calls; two busy threads count two seconds per second."""

    def __init__(self, run: Path, listener: TrainingListener) -> None:
        self.run, self.listener = run, listener
        self.cost = {"train_seconds": 0.0, "train_events": 0, "validation_seconds": 0.0, **read_cost(run)}
        self._since, self._saved = time.process_time(), time.monotonic()

    def __call__(self, events: int, /) -> None:
        """Called when a model without gradients applied events."""
        self._add("train_seconds", events)
        self.listener(events)

    def step(self, *, epoch: int, step: int, steps: int, events: int, loss: float, lr: float) -> None:
        """Called after a step."""
        self._add("train_seconds", events)
        self.listener.step(epoch=epoch, step=step, steps=steps, events=events, loss=loss, lr=lr)

    def validated(self, *, epoch: int, step: int, steps: int, metrics: dict[str, float], best: bool) -> None:
        """Called after a validation and its checkpoint."""
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
        """Write the times so far."""
        write_atomically(self.run / COST, json.dumps(self.cost) + "\n")
        self._saved = time.monotonic()


@contextmanager
def timed(run: Path, listener: TrainingListener) -> Iterator[Stopwatch]:
    """Measure the work on a run, and save the result even on errors."""
    stopwatch = Stopwatch(run, listener)
    try:
        yield stopwatch
    finally:
        if run.is_dir():  # a run that failed to start has no folder
            stopwatch.save()


def read_cost(run: Path) -> dict[str, Any]:
    """The cost of a run so far; empty if it was not measured."""
    try:
        cost: dict[str, Any] = json.loads((run / COST).read_text())
    except FileNotFoundError:
        return {}
    return cost
