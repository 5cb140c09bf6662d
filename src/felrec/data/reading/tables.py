"""Read a small table of any columns: Parquet, or separated text with a header."""

from __future__ import annotations

from pathlib import Path

from felrec.data.lazy_polars import pl
from felrec.data.reading.raw import RawColumns
from felrec.data.reading.separated import read_separated, separator_of
from felrec.data.reading.sniff import check_content
from felrec.errors import DataError

TABLES = (".parquet", ".csv", ".csv.gz", ".tsv", ".tsv.gz")


def is_table(path: Path) -> bool:
    """Whether the name of a file ends as that of a table."""
    return path.name.lower().endswith(TABLES)


def read_table(path: Path) -> RawColumns:
    """All columns of a table."""
    if not path.is_file():
        raise DataError(f"{path}: no such file; check the path")
    if not is_table(path):
        raise DataError(f"{path}: unknown file name ending; use {', '.join(TABLES)}")
    if path.name.lower().endswith(".parquet"):
        check_content(path, "a Parquet file")
        try:
            return RawColumns(pl.read_parquet(path, glob=False, hive_partitioning=False))
        except (OSError, pl.exceptions.PolarsError) as error:
            reason = (str(error).splitlines() or [""])[0]
            raise DataError(f"{path}: damaged or cut off ({reason}); write the file again") from error
    head = check_content(path, "text").removeprefix(b"\xef\xbb\xbf")
    read = read_separated(path, separator_of(head))
    if read.broken:
        fault = read.broken[0]
        raise DataError(f"{path}: row {int(fault.rows[0]) + 1}: {fault.example}")
    return read
