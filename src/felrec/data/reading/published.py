"""Read the files of published datasets into frames with columns of users, items and times."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from felrec.data.lazy_polars import pl
from felrec.data.reading.columns import Wanted
from felrec.data.reading.raw import RawColumns
from felrec.data.reading.separated import read_separated, without_trailing_blanks
from felrec.data.reading.sniff import check_content
from felrec.errors import DataError

MOVIELENS_HEADER = b"userId,movieId,rating,timestamp"
JODIE_HEADER = b"user_id,item_id,timestamp,state_label"
TWITCH_FILES = ("100k_a.csv", "100k.csv", "full_a.csv", "full_a.csv.gz")
TWITCH_STEP = 600  # seconds: Twitch was sampled every ten minutes


def known_csv(path: Path, head: bytes) -> RawColumns | None:
    """Read a file of MovieLens 20M and later, JODIE or Twitch; None if it is none of them."""
    if path.name in TWITCH_FILES:
        return _read_twitch(path)
    if head.startswith(JODIE_HEADER):
        return _read_jodie(path)
    if head.split(b"\n")[0].rstrip() == MOVIELENS_HEADER:
        return _read_movielens_csv(path)
    return None


def read_movielens_dat(path: Path, wanted: Wanted) -> RawColumns:
    """Read lines of `user::item::rating::time`, as in MovieLens 1M and 10M."""
    check_content(path, "text")
    # Split at each colon: every other field is the empty one between two colons.
    raw = read_separated(path, ":", header=False)
    if raw.frame.width != 7:
        raise DataError(
            f"{path}: lines are not user::item::rating::time; for other files use .csv or .tsv with a header"
        )
    frame = raw.frame[:, [0, 2, 4, 6]]
    frame.columns = ["user", "item", "rating", "timestamp"]
    return replace(raw, frame=frame)


def read_movielens_data(path: Path, wanted: Wanted) -> RawColumns:
    """Read tab-separated lines of user, item, rating and time, as in `u.data` of MovieLens 100K."""
    check_content(path, "text")
    raw = read_separated(path, "\t", header=False)
    if raw.frame.width != 4:
        raise DataError(f"{path}: lines are not tab-separated user, item, rating, time; give a .tsv with a header")
    raw.frame.columns = ["user", "item", "rating", "timestamp"]
    return raw


def _read_twitch(path: Path) -> RawColumns:
    """Columns without a header: user, stream, streamer, first and last ten-minute step. The streamer is the item."""
    names = ["user", "stream", "streamer", "start", "stop"]
    frame = read_separated(path, ",", header=False).frame
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
        frame = pl.read_csv(path, has_header=False, skip_rows=1, columns=[0, 1, 2], infer_schema=False, glob=False)
    except pl.exceptions.NoDataError:
        raise DataError(f"{path}: the file has a header but no events; fetch it again") from None
    except pl.exceptions.PolarsError as error:
        reason = (str(error).splitlines() or [""])[0]
        raise DataError(f"{path}: damaged ({reason}); fetch the file again") from error
    frame.columns = ["user_id", "item_id", "timestamp"]  # as the header says
    return RawColumns(without_trailing_blanks(frame), is_text=True)


def _read_movielens_csv(path: Path) -> RawColumns:
    """Read as numbers if possible (twice as fast), else as text, so that later checks can name the bad row."""
    integers = ("userId", "movieId", "timestamp")
    narrow = {**dict.fromkeys(integers, pl.Int32), "rating": pl.Float32}  # fits all of MovieLens, in half the memory
    for dtypes in (narrow, dict.fromkeys(integers, pl.Int64)):
        try:
            return RawColumns(without_trailing_blanks(pl.read_csv(path, schema_overrides=dtypes, glob=False)))
        except pl.exceptions.PolarsError:
            continue
    return read_separated(path, ",")
