"""What an attack found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from attacks.target import Code


class NotTestedHere(Exception):
    """This machine, or the code under attack, lacks something that the attack needs."""


@dataclass(frozen=True)
class Finding:
    """What was measured; `holds` is None if the attack could not run here."""

    measured: str
    holds: bool | None

    @property
    def verdict(self) -> str:
        """The word in the table."""
        return {True: "holds", False: "does not hold", None: "not tested here"}[self.holds]


@dataclass(frozen=True)
class Attack:
    """One row of the table."""

    name: str
    hole: str  # what is tried
    must_be: str
    run: Callable[[Code], Finding]
    seconds: int = 180  # after which it is cut off and does not hold


def judge(*checks: tuple[str, bool]) -> Finding:
    """A finding of several checks, each a text and whether it is as it must be. Failed ones come first.

    >>> judge(("answered 200", True), ("+ 900 MB", False)).measured
    'NOT: + 900 MB; answered 200'
    """
    failed, passed = [text for text, good in checks if not good], [text for text, good in checks if good]
    said = [f"NOT: {'; '.join(failed)}"] if failed else []
    return Finding("; ".join([*said, *passed]), not failed)


def percentile(values: list[float], share: float) -> float:
    """A quantile in the unit of the values; infinite without values."""
    return float(np.percentile(values, share)) if values else float("inf")


def in_time(code: Code, seconds: float, limit: float) -> bool:
    """Whether something was quick enough. Small sizes say nothing about time, so any time is good there."""
    return code.quick or seconds <= limit
