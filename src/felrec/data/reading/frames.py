"""Take the columns of a log out of a frame in memory: polars, pandas or pyarrow."""

from __future__ import annotations

from typing import Any

from felrec.data.lazy_polars import pl
from felrec.data.reading.columns import Wanted
from felrec.data.reading.faults import Origin
from felrec.data.reading.raw import RawLog
from felrec.errors import DataError


def raw_frame(frame: Any, wanted: Wanted, source: str) -> RawLog:
    """The columns of a frame, as if they had been read from a file."""
    columns = _as_polars(frame, wanted, source)
    origin = Origin.of(source, [source], [columns.height])
    return RawLog(columns, wanted.find(columns.columns, source), origin, wanted.where)


def _as_polars(frame: Any, wanted: Wanted, source: str) -> pl.DataFrame:
    """Convert the columns of a log from any kind of frame. Only the caller imports pandas or pyarrow."""
    if isinstance(frame, pl.LazyFrame):
        frame = frame.collect()
    if isinstance(frame, pl.DataFrame):
        return frame
    library = type(frame).__module__.split(".")[0]
    if library not in ("pandas", "pyarrow"):
        raise DataError(f"{source}: {type(frame).__name__} is not a frame of polars, pandas or pyarrow; convert it")
    if library == "pandas":
        frame = _with_index(frame, wanted)
    names = list(map(str, frame.columns if library == "pandas" else frame.column_names))
    columns = wanted.find(names, source)
    try:
        if library == "pandas":
            return pl.from_pandas(frame[columns.names()])
        return pl.DataFrame(pl.from_arrow(frame.select(columns.names())))
    except (ImportError, TypeError, ValueError, KeyError) as error:
        reason = (str(error).splitlines() or [""])[0]
        raise DataError(f"{source}: cannot read the {library} frame ({reason}); use one type per column") from error


def _with_index(frame: Any, wanted: Wanted) -> Any:
    """A pandas frame with the levels of its index as columns; without another time, a DatetimeIndex is it."""
    columns = {}
    has_time = bool(wanted.time_among(list(map(str, frame.columns))))
    for level, name in enumerate(frame.index.names):
        values = frame.index.get_level_values(level)
        if values.dtype.kind == "M":
            if has_time:
                continue
            name = name if name is not None and wanted.time_among([str(name)]) else wanted.time or "timestamp"
        if name is not None and name not in frame.columns:
            columns[name] = values
    return frame.assign(**columns) if columns else frame
