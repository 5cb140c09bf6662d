"""Read ids of users and items as all integers or all strings."""

from __future__ import annotations

from uuid import UUID

from felrec.data.lazy_polars import pl
from felrec.data.reading.faults import BadRows
from felrec.errors import DataError
from felrec.ids import CONTROL


def read_ids(column: pl.Series, role: str, source: str = "frame", *, parse: bool = False) -> pl.Series:
    """Integers become Int64 (Int32 stays), everything else String. Whole floats, as pandas makes, become integers.

    Integers beyond 64 bits become strings, and so do UUIDs, as objects or as 16 bytes. With `parse` (for text files) a
    column of strings that are all plain integers is read as integers; "007" is not a plain integer, "7.0" is 7.

    >>> read_ids(pl.Series([1.0, 7.0]), "user").to_list()
    [1, 7]
    >>> read_ids(pl.Series(["1", "007"]), "item", parse=True).to_list()
    ['1', '007']
    """
    if column.null_count():
        raise BadRows(column, column.is_null(), f"{role} id", "is missing")
    if column.dtype.is_integer():
        return _integers(column)
    if column.dtype.is_float():
        return _whole(column, role)
    texts = _texts(column)
    if texts is None:
        raise DataError(
            f"{source}: column '{column.name}' is {column.dtype}, but ids of {role}s are integers, strings or UUIDs;"
            f" convert it or name another column with --{role}-col"
        )
    if (texts == "").any():
        raise BadRows(texts, texts == "", f"{role} id", "is empty")
    return _plain_integers(texts) if parse else texts


def _texts(column: pl.Series) -> pl.Series | None:
    """Strings, bytes of UTF-8 and UUIDs as strings; None for anything else."""
    if isinstance(column.dtype, (pl.String, pl.Categorical, pl.Enum)):
        return column.cast(pl.String)
    if column.dtype == pl.Object and all(isinstance(value, UUID) for value in column):
        return pl.Series(column.name, [str(value) for value in column], dtype=pl.String)
    if column.dtype != pl.Binary:
        return None
    try:
        texts = column.cast(pl.String)  # some writers of Parquet store strings as bytes
        if not texts.str.contains(f"[{CONTROL}]").any():
            return texts
    except pl.exceptions.ComputeError:
        pass  # not UTF-8
    if (column.bin.size() == 16).all():
        return pl.Series(column.name, [str(UUID(bytes=value)) for value in column], dtype=pl.String)
    return None


def _integers(column: pl.Series) -> pl.Series:
    if column.dtype == pl.Int32:  # wide enough, and a cast would copy
        return column
    narrow = column.cast(pl.Int64, strict=False)
    return column.cast(pl.String) if narrow.null_count() else narrow


def _whole(column: pl.Series, role: str) -> pl.Series:
    bad = ~(column.is_finite() & (column == column.floor()) & (column.abs() < 2.0**53))
    if bad.any():
        raise BadRows(column, bad, f"{role} id", "is not a whole number; make ids integers or strings")
    return column.cast(pl.Int64)


def _plain_integers(texts: pl.Series) -> pl.Series:
    if texts.str.ends_with(".0").any() and texts.str.contains(r"^-?\d+(\.0)?$").all():
        texts = texts.str.strip_suffix(".0")  # pandas writes integers so if some are missing
    numbers = texts.cast(pl.Int64, strict=False)
    if numbers.null_count() or texts.str.contains(r"^(-?0.|\+|-0$)|\s").any():
        return texts
    return numbers
