"""Read a list of users or items: one id per line, or a column of a table."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import polars as pl

from felrec.data.reading.columns import find_column
from felrec.data.reading.faults import BadRows
from felrec.data.reading.identifiers import read_ids
from felrec.errors import DataError

_TABLES = (".parquet", ".csv", ".tsv")


def read_id_list(path: Path, role: Literal["user", "item"]) -> pl.Series:
    """The distinct ids of a file, in its order.

    `.parquet`, `.csv` and `.tsv` are tables with a column of the role, or with one column. Any other file is text with
    one id per line.
    """
    try:
        ids = _column(path, role) if path.suffix in _TABLES else _lines(path)
    except (OSError, UnicodeDecodeError, pl.exceptions.PolarsError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise DataError(
            f"{path}: cannot be read as a list of {role}s ({reason}); give a text file with one id per line, or a table"
        ) from error
    if not len(ids):
        raise DataError(f"{path}: there are no {role}s in it; give at least one id")
    try:
        return read_ids(ids, role, str(path), parse=ids.dtype == pl.String).unique(maintain_order=True)
    except BadRows as bad:
        raise DataError(f"{path}: {bad}") from None


def _column(path: Path, role: str) -> pl.Series:
    if path.suffix == ".parquet":
        frame = pl.read_parquet(path)
    else:
        frame = pl.read_csv(path, separator="\t" if path.suffix == ".tsv" else ",", infer_schema=False)
    name = frame.columns[0] if frame.width == 1 else find_column(role, None, frame.columns, str(path))
    return frame[name]


def _lines(path: Path) -> pl.Series:
    lines = path.read_text(encoding="utf-8-sig").splitlines()
    return pl.Series([line.strip() for line in lines if line.strip()], dtype=pl.String)
