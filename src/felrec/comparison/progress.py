"""How long work reports its progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from felrec.training.trainer import Listener


class TrainingListener(Listener, Protocol):
    """A listener that also hears how many events a model without gradients applied."""

    def __call__(self, events: int, /) -> None:
        """So many more events were applied."""
        ...


class ProgressReporter(Protocol):
    """Shows the progress of everything that takes long."""

    def training(self, model: str, run: Path) -> AbstractContextManager[TrainingListener]:
        """Follow a training run."""
        ...

    def evaluating(self, model: str, events: int) -> AbstractContextManager[Callable[[int], None]]:
        """Follow an evaluation that will walk over so many events."""
        ...


class Silent:
    """Reports nothing."""

    @contextmanager
    def training(self, model: str, run: Path) -> Iterator[TrainingListener]:
        """Follow a training run without a word."""
        yield _SilentListener()

    @contextmanager
    def evaluating(self, model: str, events: int) -> Iterator[Callable[[int], None]]:
        """Follow an evaluation without a word."""
        yield lambda done: None


class _SilentListener:
    def __call__(self, events: int, /) -> None: ...

    def step(self, *, epoch: int, step: int, steps: int, events: int, loss: float, lr: float) -> None: ...

    def validated(self, *, epoch: int, step: int, steps: int, metrics: dict[str, float], best: bool) -> None: ...
