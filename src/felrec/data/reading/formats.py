"""Read published file formats into frames with columns of users, items and times."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import polars as pl

from felrec.data.reading.columns import Wanted
from felrec.data.reading.sniff import check_content, explain
from felrec.errors import DataError

MOVIELENS_HEADER = b"userId,movieId,rating,timestamp"
JODIE_HEADER = b"user_id,item_id,timestamp,state_label"
TWITCH_FILES = ("100k_a.csv", "100k.csv", "full_a.csv", "full_a.csv.gz")
TWITCH_STEP = 600  # seconds: Twitch was sampled every ten minutes


@dataclass(frozen=True)
class RawColumns:
    """A frame as read; with `is_text` all columns are strings, even integers."""

    frame: pl.DataFrame
    is_text: bool = False


Reader: TypeAlias = Callable[[Path, Wanted], RawColumns]


def read_parquet(path: Path, wanted: Wanted) -> RawColumns:
    """Read the three columns of a Parquet file."""
    check_content(path, "a Parquet file")
    try:
        columns = wanted.find(list(pl.read_parquet_schema(path)), str(path))
        return RawColumns(pl.read_parquet(path, columns=columns.names()))
    except (OSError, pl.exceptions.PolarsError) as error:
        reason = (str(error).splitlines() or [""])[0]
        raise DataError(f"{path}: damaged or cut off ({reason}); fetch or write the file again") from error


def read_csv(path: Path, wanted: Wanted) -> RawColumns:
    """Read comma-separated text with a header; recognises the files of MovieLens 20M and later, JODIE and Twitch."""
    head = check_content(path, "text").removeprefix(b"\xef\xbb\xbf")
    if path.name in TWITCH_FILES:
        return _read_twitch(path)
    if head.startswith(JODIE_HEADER):
        return _read_jodie(path)
    if head.split(b"\n")[0].rstrip() == MOVIELENS_HEADER:
        return _read_movielens_csv(path)
    return RawColumns(_separated(path, ","), is_text=True)


def read_tsv(path: Path, wanted: Wanted) -> RawColumns:
    """Read tab-separated text with a header, also RecBole's `.inter` with its `user_id:token` names."""
    check_content(path, "text")
    return RawColumns(_separated(path, "\t"), is_text=True)


def read_movielens_dat(path: Path, wanted: Wanted) -> RawColumns:
    """Read lines of `user::item::rating::time`, as in MovieLens 1M and 10M."""
    check_content(path, "text")
    # Split at each colon: every other field is the empty one between two colons.
    frame = _separated(path, ":", header=False)
    if frame.width != 7:
        raise DataError(
            f"{path}: lines are not user::item::rating::time; for other files use .csv or .tsv with a header"
        )
    frame = frame[:, [0, 2, 4, 6]]
    frame.columns = ["user", "item", "rating", "timestamp"]
    return RawColumns(frame, is_text=True)


def read_movielens_data(path: Path, wanted: Wanted) -> RawColumns:
    """Read tab-separated lines of user, item, rating and time, as in `u.data` of MovieLens 100K."""
    check_content(path, "text")
    frame = _separated(path, "\t", header=False)
    if frame.width != 4:
        raise DataError(f"{path}: lines are not tab-separated user, item, rating, time; give a .tsv with a header")
    frame.columns = ["user", "item", "rating", "timestamp"]
    return RawColumns(frame, is_text=True)


def _read_twitch(path: Path) -> RawColumns:
    """Columns without a header: user, stream, streamer, first and last ten-minute step. The streamer is the item."""
    names = ["user", "stream", "streamer", "start", "stop"]
    frame = _separated(path, ",", header=False)
    if frame.width != len(names):
        raise DataError(f"{path}: lines are not user,stream,streamer,start,stop; rename the file if it is not Twitch's")
    frame.columns = names
    steps = frame["start"].cast(pl.Int64, strict=False)
    if steps.null_count():
        row = int(steps.is_null().arg_true()[0])
        raise DataError(
            f"{path}: row {row + 1}: the start {frame['start'][row]!r} is not a step;"
            " rename the file if it is not Twitch's"
        )
    return RawColumns(frame.with_columns(timestamp=steps * TWITCH_STEP).drop("start", "stop"), is_text=True)


def _read_jodie(path: Path) -> RawColumns:
    """Read the first three columns; the header has a single name for all feature columns."""
    try:
        frame = pl.read_csv(path, has_header=False, skip_rows=1, columns=[0, 1, 2], infer_schema=False)
    except pl.exceptions.NoDataError:
        raise DataError(f"{path}: the file has a header but no events; fetch it again") from None
    except pl.exceptions.PolarsError as error:
        raise explain(path, ",", True, error) from error
    frame.columns = ["user_id", "item_id", "timestamp"]  # as the header says
    return RawColumns(_without_trailing_blanks(frame), is_text=True)


def _read_movielens_csv(path: Path) -> RawColumns:
    """Read as numbers if possible (twice as fast), else as text, so that later checks can name the bad row."""
    integers = ("userId", "movieId", "timestamp")
    narrow = {**dict.fromkeys(integers, pl.Int32), "rating": pl.Float32}  # fits all of MovieLens, in half the memory
    for dtypes in (narrow, dict.fromkeys(integers, pl.Int64)):
        try:
            return RawColumns(_without_trailing_blanks(pl.read_csv(path, schema_overrides=dtypes)))
        except pl.exceptions.PolarsError:
            continue
    return RawColumns(_separated(path, ","), is_text=True)


def _separated(path: Path, separator: str, header: bool = True) -> pl.DataFrame:
    # Read all columns, though three are needed: only then does polars detect a row with too many fields.
    try:
        frame = pl.read_csv(path, separator=separator, has_header=header, infer_schema=False)
    except pl.exceptions.NoDataError:
        raise DataError(f"{path}: the file is empty; give a log with at least one row of data") from None
    except pl.exceptions.PolarsError as error:
        raise explain(path, separator, header, error) from error
    except OSError as error:  # a cut .gz
        raise DataError(f"{path}: damaged or cut off ({error}); fetch or write the file again") from error
    return _without_trailing_blanks(frame)


def _without_trailing_blanks(frame: pl.DataFrame) -> pl.DataFrame:
    """Drop blank lines at the end; blank lines between rows are kept, to be reported as errors."""
    tail = frame.tail(64).select(pl.all_horizontal(pl.all().is_null())).to_series().to_numpy()
    blanks = len(tail) if tail.all() else int(np.argmin(tail[::-1]))
    return frame.head(frame.height - blanks)
