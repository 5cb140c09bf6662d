"""Progress reporting of long work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from felrec.training.trainer import Listener


class TrainingListener(Listener, Protocol):
    """A listener that also receives the number of events that a model without gradients applied."""

    def __call__(self, events: int, /) -> None:
        """Called when this many more events were applied."""
        ...


class ProgressReporter(Protocol):
    """Shows the progress of training and evaluation."""

    def training(self, model: str, run: Path) -> AbstractContextManager[TrainingListener]:
        """Show the progress of a training run."""
        ...

    def evaluating(self, model: str, events: int) -> AbstractContextManager[Callable[[int], None]]:
        """Show the progress of an evaluation of this many events."""
        ...


class Silent:
    """Reports nothing."""

    @contextmanager
    def training(self, model: str, run: Path) -> Iterator[TrainingListener]:
        """Ignore the progress of a training run."""
        yield _SilentListener()

    @contextmanager
    def evaluating(self, model: str, events: int) -> Iterator[Callable[[int], None]]:
        """Ignore the progress of an evaluation."""
        yield lambda done: None


class _SilentListener:
    def __call__(self, events: int, /) -> None: ...

    def step(self, *, epoch: int, step: int, steps: int, events: int, loss: float, lr: float) -> None: ...

    def validated(self, *, epoch: int, step: int, steps: int, metrics: dict[str, float], best: bool) -> None: ...
