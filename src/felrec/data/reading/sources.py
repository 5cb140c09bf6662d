"""Read a log from files or from a frame in memory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from felrec.data.kinds import Given, KindTable
from felrec.data.log import InteractionLog, log_of
from felrec.data.reading.columns import Wanted
from felrec.data.reading.frames import raw_frame
from felrec.data.reading.good_rows import BadRowRule
from felrec.data.reading.joining import read_files
from felrec.data.reading.where import Condition


def read_log(
    path_or_frame: str | os.PathLike[str] | Any,
    *,
    user_col: str | None = None,
    item_col: str | None = None,
    time_col: str | None = None,
    time_unit: str = "auto",
    where: str | Sequence[str] = (),
    kinds: Given = None,
    newest: int | None = None,
    bad_rows: Literal["refuse", "skip"] = "refuse",
    max_bad: float = 0.05,
    rejected: str | os.PathLike[str] | None = None,
) -> InteractionLog:
    """Read a file, all files of a folder or a pattern such as `events/*.parquet`, or a frame.

    Files are Parquet, CSV, TSV, JSON lines, RecBole's `.inter`, or those of a known dataset.

    `where` reads only some rows: "kind=purchase", "kind!=view", "rating>=4", or several such conditions. A column is
    found by its name, or as `kind` or `value` by its usual names.

    `kinds` says what kinds of events mean, as in "view=context,purchase=2,dislike=negative": see `felrec.data.kinds`.

    `newest` keeps only so many events, the latest ones.

    Rows that cannot be read raise DataError, which names them. With `bad_rows="skip"` they are left out, unless their
    share is larger than `max_bad`; the log's `skipped` says which. `rejected` is a CSV file to write them to.

    >>> import polars as pl
    >>> read_log(pl.DataFrame({"uid": [1, 2], "movieId": [3, 4], "ts": ["2024-05-01", "2024-05-02"]})).n_users
    2
    """
    rule = BadRowRule(bad_rows, max_bad, None if rejected is None else Path(rejected))
    conditions = [where] if isinstance(where, str) else where
    wanted = Wanted(user_col, item_col, time_col, tuple(map(Condition.parse, conditions)))
    is_path = isinstance(path_or_frame, (str, os.PathLike))
    raw = read_files(Path(path_or_frame), wanted) if is_path else raw_frame(path_or_frame, wanted, "frame")
    log = log_of(raw, time_unit, rule, KindTable.of(kinds))
    return log if newest is None else log.newest(newest)
