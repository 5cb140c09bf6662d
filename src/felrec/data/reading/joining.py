"""Read the files of a log one after the other into one frame."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from felrec.data.lazy_polars import pl
from felrec.data.reading.columns import Columns, Wanted
from felrec.data.reading.faults import Fault, Origin
from felrec.data.reading.files import files_of, partitions_of
from felrec.data.reading.formats import reader_of
from felrec.data.reading.raw import RawColumns, RawLog
from felrec.errors import DataError


def read_files(path: Path, wanted: Wanted) -> RawLog:
    """Read a file, or all files of a folder or pattern."""
    files = files_of(path)
    parts = [_read(file, wanted, several=len(files) > 1) for file in files]
    heights = [raw.frame.height for raw, _ in parts]
    columns = _common([found for _, found in parts])
    return RawLog(
        _stacked(path, parts, columns),
        columns,
        Origin.of(str(path), list(map(str, files)), heights),
        wanted.where,
        any(raw.is_text for raw, _ in parts),
        _moved([raw.broken for raw, _ in parts], heights),
    )


def _read(file: Path, wanted: Wanted, several: bool) -> tuple[RawColumns, Columns]:
    """The columns of a log in a file, in the order of `Columns`; partitions are columns that the file lacks."""
    raw = reader_of(file)(file, wanted)
    named = {name: value for name, value in partitions_of(file).items() if name not in raw.frame.columns}
    frame = raw.frame.with_columns(pl.lit(value, dtype=pl.String).alias(name) for name, value in named.items())
    try:
        columns = wanted.find(frame.columns, str(file))
    except DataError as error:
        advice = f", or name only the files of the log, as in '{file.parent}/log*{file.suffix}'" if several else ""
        raise DataError(f"{error}{advice}") from None
    return replace(raw, frame=frame.select(columns.names())), columns


def _common(found: list[Columns]) -> Columns:
    """The columns of the first file, without a kind, value or weight that not all files have."""
    kind, value, weight = (
        getattr(found[0], role) if all(getattr(columns, role) for columns in found) else None
        for role in ("kind", "value", "weight")
    )
    return replace(found[0], kind=kind, value=value, weight=weight)


def _stacked(path: Path, parts: list[tuple[RawColumns, Columns]], columns: Columns) -> pl.DataFrame:
    """All rows under the names of `columns`: a column may have another name in another file."""
    frames = [raw.frame.select(**columns.expressions(found)) for raw, found in parts]
    if len({raw.is_text for raw, _ in parts}) > 1:
        frames = [frame.cast(pl.String) for frame in frames]
    try:
        return frames[0] if len(frames) == 1 else pl.concat(frames, how="vertical_relaxed")
    except pl.exceptions.PolarsError as error:
        reason = (str(error).splitlines() or [""])[0]
        raise DataError(f"{path}: the files have columns of different types ({reason}); use one type") from error


def _moved(broken: list[tuple[Fault, ...]], heights: list[int]) -> tuple[Fault, ...]:
    """The broken lines of all files, by their rows in the joined frame."""
    starts = np.cumsum([0, *heights[:-1]])
    return tuple(
        replace(fault, rows=fault.rows + start)
        for start, faults in zip(starts, broken, strict=True)
        for fault in faults
    )
