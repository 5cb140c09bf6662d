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
