"""Read a log from files or from a frame in memory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from felrec.data.log import InteractionLog, log_of
from felrec.data.reading.columns import Wanted
from felrec.data.reading.joining import read_files


def read_log(
    path_or_frame: str | os.PathLike[str] | Any,
    *,
    user_col: str | None = None,
    item_col: str | None = None,
    time_col: str | None = None,
    time_unit: str = "auto",
) -> InteractionLog:
    """Read a file, all files of a folder or a pattern such as `events/*.parquet`, or a frame.

    Files are Parquet, CSV, TSV, JSON lines, RecBole's `.inter`, or those of a known dataset.

    >>> import polars as pl
    >>> read_log(pl.DataFrame({"uid": [1, 2], "movieId": [3, 4], "ts": ["2024-05-01", "2024-05-02"]})).n_users
    2
    """
    if not isinstance(path_or_frame, (str, os.PathLike)):
        return InteractionLog.from_frame(
            path_or_frame, user_col=user_col, item_col=item_col, time_col=time_col, time_unit=time_unit
        )
    return log_of(read_files(Path(path_or_frame), Wanted(user_col, item_col, time_col)), time_unit)
