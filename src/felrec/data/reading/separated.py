"""Read text whose fields are separated by commas, semicolons, tabs or bars."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from felrec.data.lazy_polars import pl
from felrec.data.reading.broken_lines import blank_broken_lines, raw_text
from felrec.data.reading.raw import RawColumns
from felrec.errors import DataError

_SEPARATORS = (",", ";", "\t", "|")


def separator_of(head: bytes) -> str:
    """The separator that is most frequent in the first line, outside quotes; a comma if there is none.

    >>> separator_of(b"user;item;price, net;time"), separator_of(b"user,item,time")
    (';', ',')
    """
    unquoted = head.split(b"\n")[0].decode(errors="replace").split('"')[::2]
    return max(_SEPARATORS, key=lambda mark: sum(part.count(mark) for part in unquoted))


def read_separated(path: Path, separator: str, header: bool = True) -> RawColumns:
    """Read all columns as strings."""
    try:
        return RawColumns(_read(path, separator, header), is_text=True)
    except pl.exceptions.NoDataError:
        raise DataError(f"{path}: the file is empty; give a log with at least one row of data") from None
    except pl.exceptions.PolarsError as error:
        return _read_around_broken_lines(path, separator, header, error)
    except OSError as error:  # a cut .gz
        raise DataError(f"{path}: damaged or cut off ({error}); fetch or write the file again") from error


def _read_around_broken_lines(path: Path, separator: str, header: bool, error: Exception) -> RawColumns:
    text, broken = blank_broken_lines(raw_text(path), separator, header)
    try:
        frame = _read(text, separator, header)
    except pl.exceptions.PolarsError:
        frame = pl.DataFrame()
    if not broken or frame.height != text.count(b"\n") - header or any(fault.rows[0] < 0 for fault in broken):
        reason = (str(error).splitlines() or [""])[0]
        raise DataError(f"{path}: cannot be read as separated text ({reason}); check quotes and separators") from error
    return RawColumns(frame, is_text=True, broken=broken)


def _read(source: Path | bytes, separator: str, header: bool) -> pl.DataFrame:
    # Read all columns, though three are needed: only then does polars detect a row with too many fields.
    frame = pl.read_csv(source, separator=separator, has_header=header, infer_schema=False, glob=False)
    return frame if isinstance(source, bytes) else without_trailing_blanks(frame)


def without_trailing_blanks(frame: pl.DataFrame) -> pl.DataFrame:
    """Drop blank lines at the end; blank lines between rows are kept, to be reported as errors."""
    tail = frame.tail(64).select(pl.all_horizontal(pl.all().is_null())).to_series().to_numpy()
    blanks = len(tail) if tail.all() else int(np.argmin(tail[::-1]))
    return frame.head(frame.height - blanks)
