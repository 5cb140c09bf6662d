"""A training that dies, as in a power cut: nothing after it runs."""

from __future__ import annotations

from typing import Any


class KilledError(Exception):
    pass


class KillAfter:
    """A listener that dies at a given step."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def step(self, **_: Any) -> None:
        self.left -= 1
        if self.left == 0:
            raise KilledError

    def validated(self, **_: Any) -> None:
        pass
