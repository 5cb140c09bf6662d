"""The settings that a random search tries: ranges and choices, given as text."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from felrec.config import check_names
from felrec.errors import ConfigError
from felrec.model_kind import ModelKind

_LARGE = 10.0  # from this ratio of its ends on, a range is drawn from by its logarithm
_MANY_DRAWS = 1_000  # until combinations are taken to be exhausted, or all of them invalid
_NOT_TRIED = {"exclude_seen": "it changes what is measured", "seed": "the best of several seeds is luck"}


@dataclass(frozen=True)
class Choice:
    """One of some values."""

    values: tuple[str, ...]

    def __str__(self) -> str:
        return ",".join(self.values)

    def draw(self, rng: np.random.Generator) -> str:
        """One of the values."""
        return self.values[int(rng.integers(len(self.values)))]


@dataclass(frozen=True)
class Range:
    """A number between two others; whole if both are, and by its logarithm if they are far apart."""

    low: float
    high: float
    whole: bool

    def __str__(self) -> str:
        return "..".join(self.values)

    def draw(self, rng: np.random.Generator) -> str:
        """A number with three significant digits, or a whole one."""
        far = self.low > 0 and self.high / self.low >= _LARGE
        low, high = (math.log(self.low), math.log(self.high)) if far else (self.low, self.high)
        value = rng.uniform(low, high)
        number = math.exp(value) if far else value
        return str(round(number)) if self.whole else f"{number:.3g}"

    @property
    def values(self) -> tuple[str, ...]:
        """Its two ends."""
        return tuple(str(int(end)) if self.whole else f"{end:g}" for end in (self.low, self.high))


Space = dict[str, Choice | Range]


def read_space(texts: Iterable[str], kind: ModelKind) -> Space:
    """Parse `name=a,b,c` and `name=low..high`; every value is checked against the model's settings.

    >>> from felrec.registry import model_kind
    >>> space = read_space(["lr=0.001..0.1", "optimizer=sgd,adamw"], model_kind("felrec-s"))
    >>> space["lr"]
    Range(low=0.001, high=0.1, whole=False)
    """
    space: Space = {}
    for text in texts:
        name, _, told = text.partition("=")
        name = name.strip().replace("-", "_")
        values = tuple(value.strip() for value in told.split(",") if value.strip())
        if not name or not values or name in space:
            raise ConfigError(f"--try {text}: write each setting once, as lr=0.001..0.1 or optimizer=sgd,adamw")
        if name in _NOT_TRIED:
            raise ConfigError(f"--try {text}: {_NOT_TRIED[name]}; set it with --set {name}=VALUE instead")
        space[name] = _range(text, told) if ".." in told else Choice(values)
        for value in space[name].values:
            _check(kind, name, value)
    if not space:
        raise ConfigError("nothing to try; name settings with --try, as in --try lr=0.001..0.1")
    return space


def combinations(space: Space, given: dict[str, Any], kind: ModelKind, count: int, seed: int) -> list[dict[str, str]]:
    """Nothing changed, then up to `count` − 1 different random combinations that the model accepts.

    A longer list begins with the shorter one, so a search can be continued with more trials.
    """
    rng = np.random.default_rng(seed)
    found: list[dict[str, str]] = [{}]
    for _ in range(_MANY_DRAWS):
        if len(found) == count:
            break
        drawn = {name: one.draw(rng) for name, one in space.items()}
        if drawn not in found and _accepted(kind, {**given, **drawn}):
            found.append(drawn)
    if len(found) == 1 < count:
        kind.divide({**given, **drawn})  # says what is wrong with a combination
    return found


def _check(kind: ModelKind, name: str, value: str) -> None:
    """Raise ConfigError for a name or value that the model cannot have with any other settings."""
    check_names([name], kind.settings, kind.name)
    try:
        kind.divide({name: value})
    except ConfigError as error:
        if str(error).startswith(f"{name}="):  # otherwise it does not fit another setting's default
            raise


def _accepted(kind: ModelKind, settings: dict[str, Any]) -> bool:
    try:
        kind.divide(settings)
    except ConfigError:
        return False
    return True


def _range(text: str, told: str) -> Range:
    ends = told.split("..")
    try:
        low, high = map(float, ends)
        whole = all(end.strip().lstrip("+-").isdecimal() for end in ends)
    except ValueError:
        low, high, whole = math.nan, math.nan, False
    if not -math.inf < low < high < math.inf:
        raise ConfigError(f"--try {text}: a range is two numbers, the lower first, as in lr=0.001..0.1")
    return Range(low, high, whole)
