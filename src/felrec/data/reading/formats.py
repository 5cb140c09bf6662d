"""Choose the reader of a file by the ending of its name."""

from __future__ import annotations

from pathlib import Path

from felrec.data.lazy_polars import pl
from felrec.data.reading.columns import Wanted
from felrec.data.reading.json_rows import read_json_rows
from felrec.data.reading.published import known_csv, read_movielens_dat, read_movielens_data
from felrec.data.reading.raw import RawColumns, Reader
from felrec.data.reading.separated import read_separated, separator_of
from felrec.data.reading.sniff import check_content
from felrec.errors import DataError


def read_parquet(path: Path, wanted: Wanted) -> RawColumns:
    """Read the columns of a Parquet file that a log has."""
    check_content(path, "a Parquet file")
    try:
        with path.open("rb") as file:  # polars would take a path such as log[1].parquet for a pattern
            names = wanted.needed(list(pl.read_parquet_schema(file)))
        return RawColumns(pl.read_parquet(path, columns=names, glob=False, hive_partitioning=False))
    except (OSError, pl.exceptions.PolarsError) as error:
        reason = (str(error).splitlines() or [""])[0]
        raise DataError(f"{path}: damaged or cut off ({reason}); fetch or write the file again") from error


def read_text(path: Path, wanted: Wanted) -> RawColumns:
    """Read separated text with a header, also RecBole's `.inter` with its `user_id:token` names."""
    head = check_content(path, "text").removeprefix(b"\xef\xbb\xbf")
    return known_csv(path, head) or read_separated(path, separator_of(head))


READERS: dict[str, Reader] = {
    ".parquet": read_parquet,
    ".csv": read_text,
    ".csv.gz": read_text,
    ".tsv": read_text,
    ".tsv.gz": read_text,
    ".txt": read_text,
    ".txt.gz": read_text,
    ".jsonl": read_json_rows,
    ".jsonl.gz": read_json_rows,
    ".ndjson": read_json_rows,
    ".ndjson.gz": read_json_rows,
    ".json": read_json_rows,
    ".json.gz": read_json_rows,
    ".inter": read_text,
    ".dat": read_movielens_dat,
    ".data": read_movielens_data,
}
"""Reader functions by file name ending."""


def ending_of(path: Path) -> str | None:
    """The ending of a file name that says how to read it; None if there is no reader.

    >>> ending_of(Path("LOG.CSV.gz")), ending_of(Path("log.xlsx"))
    ('.csv.gz', None)
    """
    return next((ending for ending in READERS if path.name.lower().endswith(ending)), None)


def reader_of(path: Path) -> Reader:
    """The reader of a file."""
    ending = ending_of(path)
    if ending is None:
        raise DataError(f"{path}: unknown file name ending; use one of {', '.join(READERS)}")
    return READERS[ending]
