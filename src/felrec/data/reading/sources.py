"""Read a log from a file, the folder of a known dataset, or a frame in memory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from felrec.data.log import InteractionLog, log_of
from felrec.data.reading.columns import Wanted
from felrec.data.reading.datasets import DATASETS
from felrec.data.reading.formats import (
    TWITCH_FILES,
    Reader,
    read_csv,
    read_movielens_dat,
    read_movielens_data,
    read_parquet,
    read_tsv,
)
from felrec.errors import DataError

READERS: dict[str, Reader] = {
    ".parquet": read_parquet,
    ".csv": read_csv,
    ".csv.gz": read_csv,
    ".tsv": read_tsv,
    ".tsv.gz": read_tsv,
    ".inter": read_tsv,
    ".dat": read_movielens_dat,
    ".data": read_movielens_data,
}
"""Reader functions by file name ending."""


def read_log(
    path_or_frame: str | os.PathLike[str] | Any,
    *,
    user_col: str | None = None,
    item_col: str | None = None,
    time_col: str | None = None,
    time_unit: str = "auto",
) -> InteractionLog:
    """Read a Parquet, CSV, TSV or `.inter` file, a file or folder of a known dataset, or a frame.

    >>> import polars as pl
    >>> read_log(pl.DataFrame({"uid": [1, 2], "movieId": [3, 4], "ts": ["2024-05-01", "2024-05-02"]})).n_users
    2
    """
    if not isinstance(path_or_frame, (str, os.PathLike)):
        return InteractionLog.from_frame(
            path_or_frame, user_col=user_col, item_col=item_col, time_col=time_col, time_unit=time_unit
        )
    path = Path(path_or_frame)
    if not path.exists():
        raise DataError(f"{path}: no such file or folder; check the path")
    if path.is_dir():
        path = _log_in(path)
    wanted = Wanted(user_col, item_col, time_col)
    table = _reader_of(path)(path, wanted)
    return log_of(table.frame, wanted, time_unit, str(path), parse_ids=table.is_text)


def _reader_of(path: Path) -> Reader:
    name = path.name.lower()
    ending = next((ending for ending in READERS if name.endswith(ending)), None)
    if ending is None:
        raise DataError(f"{path}: unknown file name ending; use one of {', '.join(READERS)}")
    return READERS[ending]


def _log_in(folder: Path) -> Path:
    """Find the one file in a dataset's folder that holds its log."""
    known = dict.fromkeys([*(dataset.file for dataset in DATASETS.values()), *TWITCH_FILES])
    found = [name for name in known if (folder / name).is_file()]
    if not found:
        raise DataError(
            f"{folder}: not the folder of a known dataset, which holds one of {', '.join(known)}; give a file"
        )
    if len(found) > 1:
        raise DataError(f"{folder}: holds several logs; give one of {', '.join(found)}")
    return folder / found[0]
