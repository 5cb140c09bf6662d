"""The table of rejected rows, for people to look at and mend."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from felrec.data.lazy_polars import pl
from felrec.data.reading.faults import Fault
from felrec.data.reading.raw import RawLog

_COLUMNS = ("file", "row", "reason", "user", "item", "time", "line")


def rejected_rows(raw: RawLog, faults: Sequence[Fault]) -> pl.DataFrame:
    """All rows with faults in their order, and what they hold: user, item and time, or a line without columns."""
    tables = [_table(raw, fault) for fault in faults]
    order = np.argsort(np.concatenate([[], *(fault.rows for fault in faults)]), kind="stable")
    schema = {name: pl.Int64 if name == "row" else pl.String for name in _COLUMNS}
    return pl.concat([pl.DataFrame(schema=schema), *tables], how="diagonal")[order]


def _table(raw: RawLog, fault: Fault) -> pl.DataFrame:
    file, row = raw.origin.numbers(fault.rows)
    where = pl.DataFrame({"file": np.array(raw.origin.files)[file], "row": row}).with_columns(
        reason=pl.lit(fault.reason)
    )
    if fault.lines is not None:
        return where.with_columns(line=pl.Series(fault.lines, dtype=pl.String))
    held = raw.frame[fault.rows].select(raw.columns.user, raw.columns.item, raw.columns.time)
    texts = (_texts(column).alias(role) for column, role in zip(held, ("user", "item", "time"), strict=True))
    return where.with_columns(*texts)


def _texts(column: pl.Series) -> pl.Series:
    if column.dtype == pl.Binary:
        return column.bin.encode("hex")
    if column.dtype == pl.Object or column.dtype.is_nested():
        return pl.Series(list(map(str, column)), dtype=pl.String)
    return column.cast(pl.String)
