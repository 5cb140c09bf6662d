"""The weights of the rows of a log: by a table of kinds, or from the column that `felrec export` writes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from felrec.data.events import Weights
from felrec.data.kinds import KindTable
from felrec.data.lazy_polars import pl
from felrec.data.reading.columns import Columns
from felrec.errors import DataError


def weights_of(
    frame: pl.DataFrame, columns: Columns, table: KindTable, source: str
) -> tuple[Weights, NDArray[np.bool_]]:
    """What each row is worth (B,), and whether it is kept (B,)."""
    if columns.weight is not None:
        raise DataError(f"{source}: column '{columns.weight}' says already what events are worth; leave out --kinds")
    _refuse_another_log(columns, table, source)
    kinds, values = _described(frame, columns)
    return table.weights(kinds.to_list(), values.to_numpy())


def unmatched_in(frame: pl.DataFrame, columns: Columns, table: KindTable) -> tuple[str, ...]:
    """The entries of a table that are about none of these rows: a misspelt kind, or one that this log does not have."""
    kinds, values = _described(frame, columns)
    return table.unmatched(kinds.unique().to_list(), values.unique().to_numpy())


def _refuse_another_log(columns: Columns, table: KindTable, source: str) -> None:
    """A log has what at least one entry is about; one table may be for several logs of which some have no values."""
    about_kinds, about_values = table.needs_kinds, table.needs_values
    if (about_kinds and columns.kind is not None) or (about_values and columns.value is not None):
        return
    if about_kinds:
        raise DataError(f"{source}: no column of kinds for --kinds; name it kind, or event_type")
    if about_values:
        raise DataError(f"{source}: no column of values for --kinds; name it value, or rating")


def _described(frame: pl.DataFrame, columns: Columns) -> tuple[pl.Series, pl.Series]:
    """The kind and the value of each row, null where there is none."""
    nothing = pl.Series([None] * frame.height, dtype=pl.String)
    kinds = nothing if columns.kind is None else frame[columns.kind].cast(pl.String, strict=False)
    values = nothing if columns.value is None else frame[columns.value].cast(pl.String, strict=False)
    return kinds, _numbers(values)


def written_weights(column: pl.Series, source: str) -> Weights:
    """The weights of a file that `felrec export` wrote; an empty field is an event without a weight."""
    texts = column.cast(pl.String, strict=False)
    weights = _numbers(texts).cast(pl.Float32)
    wrong = weights.is_null() & texts.fill_null("").str.strip_chars().ne("")
    if wrong.any() or weights.is_infinite().any():
        raise DataError(f"{source}: column '{column.name}' has weights that are not numbers; fix or remove it")
    return weights.to_numpy().astype(np.float32)  # null becomes NaN


def _numbers(texts: pl.Series) -> pl.Series:
    return texts.str.replace(",", ".", literal=True).cast(pl.Float64, strict=False)
