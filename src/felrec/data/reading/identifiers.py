"""Read ids of users and items as all integers or all strings."""

from __future__ import annotations

from typing import NoReturn

import polars as pl

from felrec.errors import DataError


def read_ids(column: pl.Series, role: str, source: str = "frame", *, parse: bool = False) -> pl.Series:
    """Integers become Int64 (Int32 stays), everything else String. Whole floats, as pandas makes, become integers.

    Integers beyond 64 bits become strings. With `parse` (for text files) a column of strings that are all plain
    integers is read as integers; "007" is not a plain integer.

    >>> read_ids(pl.Series([1.0, 7.0]), "user").to_list()
    [1, 7]
    >>> read_ids(pl.Series(["1", "007"]), "item", parse=True).to_list()
    ['1', '007']
    """
    if column.null_count():
        _fail(column, column.is_null(), role, source, "is missing")
    if column.dtype.is_integer():
        return _integers(column)
    if column.dtype.is_float():
        return _whole(column, role, source)
    if not isinstance(column.dtype, (pl.String, pl.Categorical, pl.Enum)):
        raise DataError(
            f"{source}: column '{column.name}' is {column.dtype}, but a {role} id is an integer or a string;"
            f" convert it or name another column with --{role}-col"
        )
    texts = column.cast(pl.String)
    if (texts == "").any():
        _fail(texts, texts == "", role, source, "is empty")
    return _plain_integers(texts) if parse else texts


def _integers(column: pl.Series) -> pl.Series:
    if column.dtype == pl.Int32:  # wide enough, and a cast would copy
        return column
    narrow = column.cast(pl.Int64, strict=False)
    return column.cast(pl.String) if narrow.null_count() else narrow


def _whole(column: pl.Series, role: str, source: str) -> pl.Series:
    bad = ~(column.is_finite() & (column == column.floor()) & (column.abs() < 2.0**53))
    if bad.any():
        _fail(column, bad, role, source, "is not a whole number; make ids integers or strings")
    return column.cast(pl.Int64)


def _plain_integers(texts: pl.Series) -> pl.Series:
    numbers = texts.cast(pl.Int64, strict=False)
    if numbers.null_count() or texts.str.contains(r"^(-?0.|\+|-0$)|\s").any():
        return texts
    return numbers


def _fail(column: pl.Series, bad: pl.Series, role: str, source: str, what: str) -> NoReturn:
    row = int(bad.arg_true()[0])
    shown = f" {column[row]!r}"[:60] if column[row] not in (None, "") else ""
    raise DataError(f"{source}: row {row + 1}: the {role} id{shown} in column '{column.name}' {what}")
