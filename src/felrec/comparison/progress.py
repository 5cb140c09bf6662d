"""Whoever wants to see how far the work is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from felrec.training.trainer import Listener


class TrainingWatch(Listener, Protocol):
    """A listener that also hears how many events a model without gradients took in."""

    def __call__(self, events: int, /) -> None:
        """So many more events were taken in."""
        ...


class ProgressReporter(Protocol):
    """Follows everything that takes long."""

    def training(self, model: str, run: Path) -> AbstractContextManager[TrainingWatch]:
        """Follow a training run."""
        ...

    def evaluating(self, model: str, events: int) -> AbstractContextManager[Callable[[int], None]]:
        """Follow an evaluation that will walk over so many events."""
        ...


class Silent:
    """Nobody looks."""

    @contextmanager
    def training(self, model: str, run: Path) -> Iterator[TrainingWatch]:
        """Tell nobody."""
        yield _Deaf()

    @contextmanager
    def evaluating(self, model: str, events: int) -> Iterator[Callable[[int], None]]:
        """Tell nobody."""
        yield lambda done: None


class _Deaf:
    def __call__(self, events: int, /) -> None: ...

    def step(self, *, epoch: int, step: int, steps: int, events: int, loss: float, lr: float) -> None: ...

    def validated(self, *, epoch: int, step: int, steps: int, metrics: dict[str, float], best: bool) -> None: ...
