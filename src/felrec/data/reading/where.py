"""Conditions on the columns of a log, as in `kind=purchase` or `rating>=4`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from felrec.data.lazy_polars import pl
from felrec.errors import ConfigError, DataError

_FORM = re.compile(r"\s*(?P<column>[^!<>=]*[^!<>=\s])\s*(?P<operator>!=|<=|>=|=|<|>)\s*(?P<value>.*?)\s*")
_SHOWN = 5  # values of a column that a message lists


@dataclass(frozen=True)
class Condition:
    """What the value of a column must be for a row to count."""

    column: str
    operator: str
    values: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Condition:
        """Read a condition; after `=` and `!=` there may be several values.

        >>> Condition.parse("kind = cart, purchase")
        Condition(column='kind', operator='=', values=('cart', 'purchase'))
        """
        found = _FORM.fullmatch(text)
        if not found:
            raise ConfigError(f"--where {text!r}: write a condition such as 'kind=purchase' or 'rating>=4'")
        is_list = found["operator"] in ("=", "!=")
        values = tuple(value.strip() for value in found["value"].split(",")) if is_list else (found["value"],)
        if not is_list and _number(found["value"]) is None:
            raise ConfigError(f"--where {text!r}: after {found['operator']} give a number")
        return cls(found["column"], found["operator"], values)

    def __str__(self) -> str:
        return f"{self.column}{self.operator}{','.join(self.values)}"

    def holds(self, column: pl.Series) -> pl.Series:
        """For each row whether it counts; a missing value is equal to nothing."""
        texts = column.cast(pl.String, strict=False)
        numbers = texts.str.replace(",", ".", literal=True).cast(pl.Float64, strict=False)
        if self.operator in ("=", "!="):
            given = [number for value in self.values if (number := _number(value)) is not None]
            equal = (texts.is_in(list(self.values)) | numbers.is_in(given)).fill_null(False)
            return equal if self.operator == "=" else ~equal
        limit = float(self.values[0].replace(",", "."))
        compared = {"<": numbers < limit, "<=": numbers <= limit, ">": numbers > limit, ">=": numbers >= limit}
        return compared[self.operator].fill_null(False)


def matching_rows(frame: pl.DataFrame, conditions: Sequence[tuple[Condition, str]], source: str) -> NDArray[np.int64]:
    """The rows for which all conditions hold, each on the column with the name beside it."""
    rows = np.arange(frame.height)
    for condition, name in conditions:
        column = frame[name].gather(rows)
        rows = rows[condition.holds(column).to_numpy()]
        if not len(rows):
            common = column.cast(pl.String, strict=False).value_counts(sort=True).head(_SHOWN)
            shown = ", ".join("missing" if value is None else str(value) for value in common[name])
            raise DataError(f"{source}: no row with {condition}; column '{name}' is {shown} …; change --where")
    return rows


def _number(text: str) -> float | None:
    try:
        return float(text.replace(",", "."))
    except ValueError:
        return None
