"""The CPU time that a run takes, added up in a file over all the processes that worked on it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from felrec.comparison.progress import TrainingWatch
from felrec.files import write_atomically

COST = "cost.json"
_SAVED_EVERY = 5.0  # seconds; what a killed process does not get to write is lost


class Stopwatch:
    """Counts while it passes on what it hears. Threads count too: two busy ones make two seconds in one."""

    def __init__(self, run: Path, watched: TrainingWatch) -> None:
        self.run, self.watched = run, watched
        self.cost = {"train_seconds": 0.0, "train_events": 0, "validation_seconds": 0.0, **read_cost(run)}
        self._since, self._saved = time.process_time(), time.monotonic()

    def __call__(self, events: int, /) -> None:
        """A model without gradients took events in."""
        self._add("train_seconds", events)
        self.watched(events)

    def step(self, *, epoch: int, step: int, steps: int, events: int, loss: float, lr: float) -> None:
        """After a step."""
        self._add("train_seconds", events)
        self.watched.step(epoch=epoch, step=step, steps=steps, events=events, loss=loss, lr=lr)

    def validated(self, *, epoch: int, step: int, steps: int, metrics: dict[str, float], best: bool) -> None:
        """After a validation and what is written then."""
        self._add("validation_seconds")
        self.watched.validated(epoch=epoch, step=step, steps=steps, metrics=metrics, best=best)

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
def timed(run: Path, watched: TrainingWatch) -> Iterator[Stopwatch]:
    """Count the work on a run, and save the count whatever happens."""
    watch = Stopwatch(run, watched)
    try:
        yield watch
    finally:
        if run.is_dir():  # a run that could not begin has none
            watch.save()


def read_cost(run: Path) -> dict[str, Any]:
    """What a run took so far; nothing if it was not counted."""
    try:
        cost: dict[str, Any] = json.loads((run / COST).read_text())
    except FileNotFoundError:
        return {}
    return cost
