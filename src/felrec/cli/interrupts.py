"""Let Ctrl-C end long work at its next step instead of at once."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def interrupts_counted() -> Iterator[Callable[[], int]]:
    """Count interrupts; the function that it yields tells how many there were. The second one stops at once."""
    count = 0

    def interrupted(number: int, frame: FrameType | None) -> None:
        nonlocal count
        count += 1
        if count > 1:
            raise KeyboardInterrupt
        print("\nending after this step and writing what there is; Ctrl-C again to stop at once", file=sys.stderr)

    before = signal.signal(signal.SIGINT, interrupted)
    try:
        yield lambda: count
    finally:
        signal.signal(signal.SIGINT, before)


class StopAfterStep:
    """A listener that ends a training after the step in which it was interrupted."""

    def __init__(self, interrupts: Callable[[], int]) -> None:
        self._interrupts = interrupts

    def step(self, *, epoch: int, step: int, steps: int, events: int, loss: float, lr: float) -> None:
        """End if there was an interrupt."""
        from felrec.training.trainer import StopTraining  # here, because it imports torch

        if self._interrupts():
            raise StopTraining

    def validated(self, *, epoch: int, step: int, steps: int, metrics: dict[str, float], best: bool) -> None:
        """Nothing: a checkpoint was just written, and the next step comes soon."""
