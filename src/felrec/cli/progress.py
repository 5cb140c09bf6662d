"""Progress on stderr: on a terminal a bar with rate, loss and time left, elsewhere a line every half minute."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.text import Text


class _Rate(ProgressColumn):
    """Events, or what else is counted, per second."""

    def __init__(self, counted: str) -> None:
        super().__init__()
        self._counted = counted

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:,.0f} {self._counted}/s" if task.speed else "")


class EventProgress(Progress):
    """A bar on a terminal; elsewhere, such as in the log of a job, a line after 10 seconds and then every 30."""

    FIRST, EVERY = 10.0, 30.0  # seconds

    def __init__(self, *columns: ProgressColumn, counted: str, clock: Callable[[], float] = time.monotonic) -> None:
        console = Console(stderr=True, highlight=False, markup=False, emoji=False)
        super().__init__(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._counted, self._clock = counted, clock
        self._began = self._reported = clock()
        self._before = 0.0  # what was done when a task was added: a resumed training begins in the middle

    def add_task(self, description: str, **given: Any) -> TaskID:  # type: ignore[override]
        """Add the task; its time counts from now."""
        self._began, self._before = self._clock(), float(given.get("completed", 0))
        self._reported = self._began - self.EVERY + self.FIRST
        return super().add_task(description, **given)

    def count(self, task: TaskID, done: int, **shown: Any) -> None:
        """Advance by a number of events."""
        self.update(task, advance=done, **shown)
        now = self._clock()
        if self.disable and now - self._reported >= self.EVERY:
            self._reported = now
            self.console.print(self._line(self._tasks[task], now - self._began), soft_wrap=True)

    def _line(self, task: Task, seconds: float) -> str:
        rate = (task.completed - self._before) / seconds
        line = f"{task.description}: {task.completed:,.0f}"
        if task.total is None:
            return f"{line} {self._counted}, {rate:,.0f}/s"
        left = _span((task.total - task.completed) / rate) if rate else "?"
        share = task.completed / max(1.0, task.total)
        return f"{line} of {task.total:,.0f} {self._counted} ({share:.0%}), {rate:,.0f}/s, about {left} left"


def _span(seconds: float) -> str:
    """A time in the unit that people would use.

    >>> _span(40), _span(400), _span(20_000)
    ('40 s', '7 min', '5.6 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5_400 else f"{seconds / 3_600:.1f} h"


def event_bar(counted: str = "events") -> EventProgress:
    """Make a bar that counts events."""
    return EventProgress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        _Rate(counted),
        TextColumn("{task.fields[loss]}", markup=False),
        TimeRemainingColumn(),
        counted=counted,
    )


@contextmanager
def counting_bar(label: str, total: int, counted: str = "events") -> Iterator[Callable[[int], None]]:
    """Show a bar for a number of events; the function it yields advances the bar by some of them."""
    with event_bar(counted) as bar:
        task = bar.add_task(label, total=total, loss="")
        yield lambda done: bar.count(task, done)


@contextmanager
def bytes_bar(name: str) -> Iterator[Callable[[int, int | None], None]]:
    """Show a bar for a download; the function it yields takes the bytes so far and the total, if known."""
    console = Console(stderr=True, emoji=False)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(name, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


class TrainingProgress:
    """Shows one training run: a `Listener` for trained models, a `Progress` for models without gradients."""

    def __init__(self, model: str, run: Path, bar: EventProgress) -> None:
        self.model, self.run, self.bar = model, run, bar
        self._task: TaskID | None = None
        self._plan: dict[str, Any] = {}
        self._loss, self._events = 0.0, 0
        self._since = self._latest = time.monotonic()
        self._counted = 0  # events of this epoch that this process trained on

    def __call__(self, events: int) -> None:
        """Count events that a model without gradients observed; their total is unknown."""
        if self._task is None:
            self._task = self.bar.add_task(f"{self.model}: observing the log", total=None, loss="")
        self.bar.count(self._task, events)

    def step(self, *, epoch: int, step: int, steps: int, events: int, loss: float, lr: float) -> None:
        """Advance the bar."""
        if self._task is None:
            self._begin(epoch, step, steps)
            self._since, events_timed = time.monotonic(), 0  # the first step was not timed, so leave it out
        else:
            events_timed = events
        assert self._task is not None
        self._loss += loss * events
        self._events += events
        self._counted += events_timed
        self._latest = time.monotonic()
        label = f"{self.model}: epoch {epoch + 1}/{self._plan['epochs']}"
        if step == steps:
            label += ", validating"
        self.bar.count(self._task, events, description=label, loss=f"loss {loss:.3f}")

    def validated(self, *, epoch: int, step: int, steps: int, metrics: dict[str, float], best: bool) -> None:
        """Print the line of an epoch, or of a validation within one."""
        if self._task is None:  # resumed at the end of an epoch, with nothing left to train
            self._begin(epoch, step + 1, steps)
        within = step < steps
        values = ", ".join(f"{name} {value:.3f}" for name, value in metrics.items())
        line = f"{self.model}: epoch {epoch + 1}/{self._plan['epochs']}{f', step {step}' if within else ''}"
        line += f"  loss {self._loss / max(1, self._events):.3f}  validation {values}"
        if not within:
            rate = f"  {self._counted / max(1e-9, self._latest - self._since):,.0f} events/s" if self._counted else ""
            line += rate + ("  best so far" if best else "")
            self._loss, self._events = 0.0, 0
            self._since = self._latest = time.monotonic()
            self._counted = 0
        self.bar.console.print(line, soft_wrap=True)

    def _begin(self, epoch: int, step: int, steps: int) -> None:
        """Read from the manifest how much there is to do, and how much was done before an interruption."""
        manifest = json.loads((self.run / "manifest.json").read_text())
        training, per_epoch = manifest["training"], manifest["split"]["train_end"]
        self._plan = {"epochs": training["epochs"]}
        if step > 1:
            self._events = manifest["resume"]["learned"]
            self._loss = manifest["resume"]["loss_sum"]
        done = round((epoch + (step - 1) / steps) * per_epoch)
        self._task = self.bar.add_task(self.model, total=training["epochs"] * per_epoch, completed=done, loss="")


class TerminalReporter:
    """Shows the progress of training and evaluation."""

    @contextmanager
    def training(self, model: str, run: Path) -> Iterator[TrainingProgress]:
        """Show a training run."""
        with event_bar() as bar:
            yield TrainingProgress(model, run, bar)

    def evaluating(self, model: str, events: int) -> AbstractContextManager[Callable[[int], None]]:
        """Show an evaluation over `events` events."""
        return counting_bar(f"{model}: evaluating", events)
