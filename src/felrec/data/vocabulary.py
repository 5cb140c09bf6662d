"""External ids and the dense rows that represent them inside felrec."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from felrec.data.events import Rows
from felrec.data.lazy_polars import pl
from felrec.errors import DataError

Id: TypeAlias = int | str
Ids: TypeAlias = "pl.Series | NDArray[np.integer] | Sequence[int] | Sequence[str] | Sequence[int | str]"

_INT64 = np.iinfo(np.int64)
# One spelling per number: "007" and "7" may be two products, so only "7" is read as the integer 7.
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")


class Vocabulary:
    """A growing list of distinct ids, in order of first appearance, that are all int or all str.

    Strings match the integers that they spell, and integers match their spelling:

    >>> movies = Vocabulary([30, 10, 30, 20])
    >>> len(movies), movies.rows([10, "30", "x"]).tolist(), movies.ids([2, 0])
    (3, [1, 0, -1], [20, 30])

    Adding an id that is not an integer converts a vocabulary of integers to strings; the rows do not change:

    >>> movies.add(["new", 10]).tolist(), movies.ids([0, 3]), movies.rows([30]).tolist()
    ([3, 1], ['30', 'new'], [0])
    """

    def __init__(self, ids: Ids = ()) -> None:
        empty = isinstance(ids, tuple) and not ids  # needs no polars: a service may begin without ids
        self._series: pl.Series | None = None if empty else _as_series(ids).unique(maintain_order=True)
        # Built at the first look-up, so that a log that is only read needs no Python objects.
        self._ids: list[Id] | None = [] if empty else None
        self._index: dict[Id, int] | None = None

    def __len__(self) -> int:
        return len(self._ids) if self._series is None and self._ids is not None else len(self.series)

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} ids of {'int' if self._is_int else 'str'})"

    @property
    def series(self) -> pl.Series:
        """All ids in row order, Int64 or String."""
        if self._series is None:
            self._series = _as_series(self._ids or [])
        return self._series

    @property
    def _is_int(self) -> bool:
        first: object = self._ids[0] if self._ids else self.series.dtype
        return isinstance(first, int) or first == pl.Int64

    def ids(self, rows: Rows | Sequence[int]) -> list[int] | list[str]:
        """Return the ids of `rows`."""
        wanted = np.asarray(rows, dtype=np.int64).reshape(-1)
        if len(wanted) and not (wanted.min() >= 0 and wanted.max() < len(self)):
            raise IndexError(f"rows {wanted.min()} to {wanted.max()} are out of range; there are {len(self)} ids")
        if self._series is None and self._ids is not None:
            return cast("list[int] | list[str]", list(map(self._ids.__getitem__, wanted.tolist())))
        return self.series.gather(wanted).to_list()

    def all(self) -> list[int] | list[str]:
        """Return all ids in row order.

        >>> Vocabulary(["b", "a"]).all(), Vocabulary().all()
        (['b', 'a'], [])
        """
        return self.ids(range(len(self)))

    def rows(self, ids: Ids) -> Rows:
        """Return the rows of `ids`, −1 where unknown."""
        index, keys = self._lookup(), _keys(ids, self._is_int)
        return np.fromiter(map(index.get, keys, repeat(-1)), np.int32, len(keys))

    def add(self, ids: Ids) -> Rows:
        """Return the rows of `ids`, after adding those that were unknown, in order of first appearance."""
        index = self._lookup()
        keys = _keys(ids, self._is_int if index else _all_integers(ids))
        if index and self._is_int and str in set(map(type, keys)):
            index, keys = self._become_strings(), list(map(str, keys))
        fresh = list(dict.fromkeys(key for key in keys if key not in index))
        if fresh:
            index.update(zip(fresh, range(len(index), len(index) + len(fresh)), strict=True))
            cast("list[Id]", self._ids).extend(fresh)
            self._series = None
        return np.fromiter(map(index.__getitem__, keys), np.int32, len(keys))

    def prefix(self, n: int) -> Vocabulary:
        """Return the vocabulary of the first `n` ids.

        >>> Vocabulary(["a", "b", "c"]).prefix(2).ids([0, 1])
        ['a', 'b']
        """
        return Vocabulary(self.series.head(n))

    def save(self, path: Path) -> None:
        """Write the ids as a Parquet file of one column, `id`."""
        pl.DataFrame({"id": self.series}).write_parquet(path)

    @classmethod
    def load(cls, path: Path) -> Vocabulary:
        """Read what `save` wrote."""
        try:
            series = pl.read_parquet(path)["id"]
        except (OSError, pl.exceptions.PolarsError) as error:
            raise DataError(f"{path}: not a vocabulary saved by felrec ({_first_line(error)})") from error
        vocabulary = cls(series)
        # Dropping a repeated id would silently shift every row after it.
        if len(vocabulary) != len(series):
            raise DataError(f"{path}: the vocabulary contains an id twice; restore the file from a backup")
        return vocabulary

    def _lookup(self) -> dict[Id, int]:
        if self._index is None:
            self._ids = self.series.to_list()
            self._index = dict(zip(self._ids, range(len(self._ids)), strict=True))
        return self._index

    def _become_strings(self) -> dict[Id, int]:
        self._series = self.series.cast(pl.String)
        self._index = None
        return self._lookup()


def _as_series(ids: Ids) -> pl.Series:
    if isinstance(ids, pl.Series) and ids.dtype in (pl.Int64, pl.String):
        return ids
    integers = _all_integers(ids)
    return pl.Series("id", _keys(ids, integers), dtype=pl.Int64 if integers else pl.String)


def _as_list(ids: Ids) -> list[Id]:
    return ids.to_list() if isinstance(ids, pl.Series) else ids.tolist() if isinstance(ids, np.ndarray) else list(ids)


def _all_integers(ids: Ids) -> bool:
    """Whether every id is a 64-bit integer; larger ones are kept as strings."""
    values = _as_list(ids)
    kinds = set(map(type, values))
    whole = bool(kinds) and all(issubclass(kind, (int, np.integer)) for kind in kinds)
    return whole and _INT64.min <= min(values) and max(values) <= _INT64.max  # type: ignore[operator]


def _keys(ids: Ids, integers: bool) -> list[Id]:
    """Convert the ids to the type of a vocabulary of integers or of strings."""
    values = _as_list(ids)
    if not integers and set(map(type, values)) <= {str}:
        return values
    return list(map(partial(_key, integers=integers), values))


def _key(value: Id, integers: bool) -> Id:
    if isinstance(value, bool) or not isinstance(value, (int, str, np.integer)):
        raise DataError(f"an id must be an integer or a string, not {value!r}")
    if not integers:
        return str(value)
    if isinstance(value, str):
        if not _INTEGER.fullmatch(value):
            return value
        value = int(value)
    return int(value) if _INT64.min <= value <= _INT64.max else str(value)


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
