"""The events of a store as a log again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl

from felrec.data.log import InteractionLog
from felrec.service.replaying import named_blocks
from felrec.store.protocol import Contents

WRITERS: dict[str, Callable[[pl.DataFrame, Path], None]] = {
    ".parquet": pl.DataFrame.write_parquet,
    ".csv": pl.DataFrame.write_csv,
}


def events_of(contents: Contents, log: InteractionLog | None = None) -> pl.DataFrame:
    """User, item and time of every event, in the order they came; those of the base first, if its log is given."""
    schema = {"user": pl.String, "item": pl.String, "timestamp": pl.Float64}
    blocks = [
        pl.DataFrame({"user": block.users, "item": block.items, "timestamp": block.times}, schema=schema)
        for block in named_blocks(contents, log)
    ]
    return pl.concat([pl.DataFrame(schema=schema), *blocks])
