"""Export the events of a store as a log."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from felrec.data.events import WEIGHT_COLUMN, Weights, joined_weights
from felrec.data.lazy_polars import pl
from felrec.data.log import InteractionLog
from felrec.service.maintenance.replaying import named_blocks
from felrec.store.protocol import Contents

WRITERS: dict[str, Callable[[pl.DataFrame, Path], None]] = {
    ".parquet": pl.DataFrame.write_parquet,
    ".csv": pl.DataFrame.write_csv,
}


def events_of(contents: Contents, log: InteractionLog | None = None) -> pl.DataFrame:
    """User, item and time of every event, in order of arrival; events of the base come first if its log is given.

    If some events have weights there is a fourth column.
    """
    users, items, times = list[str](), list[str](), list[float]()
    weights = list[tuple[Weights | None, int]]()
    for block in named_blocks(contents, log):  # lists, because most blocks have one event
        users += block.users
        items += block.items
        times += block.times.tolist()
        weights.append((block.weights, len(block)))
    schema = {"user": pl.String, "item": pl.String, "timestamp": pl.Float64}
    frame = pl.DataFrame({"user": users, "item": items, "timestamp": times}, schema=schema)
    joined = joined_weights(weights)
    if joined is None or np.isnan(joined).all():
        return frame
    return frame.with_columns(pl.Series(WEIGHT_COLUMN, joined).fill_nan(None))
