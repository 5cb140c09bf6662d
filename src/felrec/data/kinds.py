"""What the kinds and values of events mean: one small table for files, the library, imports and the service.

    view=context, purchase=3, dislike=negative, remove=ignore, rating<=2=negative

An entry is a kind, a condition on the value, or `*` for everything; the first entry that matches an event says what it
is worth. A number above 0 is the weight with which it counts. `context` (0) is part of the history, but never a target.
`negative` (-1, or any number below 0) speaks against the item. `ignore` leaves the event out. An event that no entry
matches counts with weight 1.
"""

from __future__ import annotations

import math
import operator
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from felrec.data.events import Weights
from felrec.data.reading.columns import is_value_name
from felrec.errors import ConfigError

Given: TypeAlias = str | Path | Mapping[str, str | float] | None
"""A table as text, as the path of a TOML file with a table [kinds], or as a dictionary."""

_WORDS = {"context": 0.0, "negative": -1.0, "ignore": math.nan}
_MOST = 1_000.0  # a weight that a state can hold beside ones
_ANY = "*"
_CONDITION = re.compile(r"(?P<name>[^<>=]+?)\s*(?P<operator><=|>=|<|>)\s*(?P<limit>-?[\d.]+)")
_COMPARED: dict[str, Callable[..., NDArray[np.bool_]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True)
class Entry:
    """What some events are worth: those of a kind, those whose value is in a range, or all."""

    name: str  # as it was written
    weight: float  # NaN: they are left out
    kind: str | None = None
    operator: str | None = None  # of a condition on the value
    limit: float = 0.0

    def matches(self, kinds: NDArray[np.str_], values: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which events it is about."""
        if self.operator:
            return _COMPARED[self.operator](values, self.limit)  # false for NaN
        matched: NDArray[np.bool_] = np.ones(len(kinds), dtype=bool) if self.kind == _ANY else kinds == self.kind
        return matched


@dataclass(frozen=True)
class KindTable:
    """The entries of a table, in order.

    >>> table = KindTable.parse("view=context, dislike=negative, value<3=ignore, buy=2")
    >>> weights, kept = table.weights(["view", "buy", "dislike", None, "buy"], [5, 5, 5, 5, 2])
    >>> weights[kept].tolist(), kept.tolist()
    ([0.0, 2.0, -1.0, 1.0], [True, True, True, True, False])
    """

    entries: tuple[Entry, ...]

    @classmethod
    def of(cls, given: Given) -> KindTable | None:
        """Read a table however it is given; None: there is none."""
        if given is None or isinstance(given, KindTable):
            return given
        if isinstance(given, Path) or (isinstance(given, str) and given.endswith(".toml")):
            given = _of_file(Path(given))
        return cls.parse(given) if isinstance(given, str) else cls._of_pairs(given)

    @classmethod
    def parse(cls, text: str) -> KindTable:
        """Read `kind=meaning` pairs with commas between them."""
        pairs = dict[str, str | float]()
        for pair in text.split(","):
            name, equals, meaning = pair.rpartition("=")
            if not equals or not name.strip() or name.rstrip().endswith(("<", ">", "=")):
                raise ConfigError(f"--kinds {pair.strip()!r}: write it as view=context, purchase=2 or value<3=negative")
            if name.strip() in pairs:
                raise ConfigError(f"--kinds: {name.strip()!r} has two entries; give it one")
            pairs[name.strip()] = meaning
        return cls._of_pairs(pairs)

    @classmethod
    def _of_pairs(cls, pairs: Mapping[str, str | float]) -> KindTable:
        if not pairs:
            raise ConfigError("--kinds: the table has no entries; write some, as in view=context,purchase=2")
        return cls(tuple(_entry(name, meaning) for name, meaning in pairs.items()))

    @property
    def needs_kinds(self) -> bool:
        """Whether an entry is about a kind."""
        return any(entry.kind not in (None, _ANY) for entry in self.entries)

    @property
    def needs_values(self) -> bool:
        """Whether an entry is about the value."""
        return any(entry.operator for entry in self.entries)

    def unmatched(self, kinds: Sequence[str | None], values: NDArray[np.float64]) -> tuple[str, ...]:
        """The names of entries that match none of these kinds or none of these values; `*` always matches.

        >>> table = KindTable.parse("view=context, purchse=3, rating<3=negative")
        >>> table.unmatched(["view", "purchase"], np.array([4.0]))
        ('purchse', 'rating<3')
        """
        names = np.array([(kind or "").strip() for kind in kinds], dtype=np.str_)
        tried = ((entry, entry.matches(names, values)) for entry in self.entries if entry.kind != _ANY)
        return tuple(entry.name for entry, matched in tried if not matched.any())

    def weights(
        self, kinds: Sequence[str | None], values: Sequence[float | None] | NDArray[np.float64]
    ) -> tuple[Weights, NDArray[np.bool_]]:
        """The weight of each event (B,), and whether it is kept (B,); the weights of others mean nothing."""
        names = np.array([(kind or "").strip() for kind in kinds], dtype=np.str_)
        numbers = np.asarray(values, dtype=np.float64)
        weights = np.ones(len(names), dtype=np.float32)
        for entry in reversed(self.entries):  # so that the first has the last word
            weights[entry.matches(names, numbers)] = entry.weight
        return weights, ~np.isnan(weights)


def _entry(name: str, meaning: str | float) -> Entry:
    weight = meaning_of(name, meaning)
    condition = _CONDITION.fullmatch(name.strip())
    if not condition:
        return Entry(name.strip(), weight, kind=name.strip())
    if not is_value_name(condition["name"]):
        raise ConfigError(f"--kinds {name!r}: a condition is on the value of an event, as in value<=2 or rating<3")
    return Entry(name.strip(), weight, operator=condition["operator"], limit=float(condition["limit"]))


def meaning_of(name: str, meaning: str | float, option: str = "--kinds") -> float:
    """The weight that a meaning is, NaN for `ignore`; ConfigError, which names the option, if it is none."""
    if isinstance(meaning, str) and meaning.strip() in _WORDS:
        return _WORDS[meaning.strip()]
    try:
        weight = math.nan if isinstance(meaning, bool) else float(meaning)
    except (TypeError, ValueError):
        weight = math.nan
    if not abs(weight) <= _MOST:
        words = ", ".join(_WORDS)
        raise ConfigError(f"{option} {name}={meaning}: give a weight from -{_MOST:g} to {_MOST:g}, or one of {words}")
    return weight


def _of_file(path: Path) -> Mapping[str, str | float]:
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8")).get("kinds")
    except (OSError, ValueError) as error:
        raise ConfigError(f"--kinds {path}: cannot be read as TOML ({error})") from None
    if not isinstance(table, dict):
        raise ConfigError(f"--kinds {path}: has no table [kinds]")
    return table
