"""Read a list of users or items: one id per line, or a column of a table."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from felrec.data.lazy_polars import pl
from felrec.data.reading.columns import find_column
from felrec.data.reading.identifiers import read_ids
from felrec.data.reading.tables import is_table, read_table
from felrec.errors import DataError


def read_id_list(path: Path, role: Literal["user", "item"]) -> pl.Series:
    """The distinct ids of a file, in its order.

    `.parquet`, `.csv` and `.tsv` are tables with a column of the role, or with one column. Any other file is text with
    one id per line.
    """
    if is_table(path):
        frame = read_table(path).frame
        ids = frame[frame.columns[0] if frame.width == 1 else find_column(role, None, frame.columns, str(path))]
    else:
        ids = _lines(path, role)
    if not len(ids):
        raise DataError(f"{path}: there are no {role}s in it; give at least one id")
    return read_ids(ids, role, str(path), parse=ids.dtype == pl.String).unique(maintain_order=True)


def _lines(path: Path, role: str) -> pl.Series:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"{path}: cannot be read as a list of {role}s ({error}); give text with one id per line, or a table"
        ) from error
    return pl.Series([line.strip() for line in lines if line.strip()], dtype=pl.String)
