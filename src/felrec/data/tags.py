"""Tags of items, from a file, a frame or a dictionary."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from felrec.data.events import Rows
from felrec.data.lazy_polars import pl
from felrec.data.reading.columns import first_named, item_column
from felrec.data.reading.identifiers import read_ids
from felrec.data.reading.tables import read_table
from felrec.data.vocabulary import Vocabulary
from felrec.errors import DataError

TAG_NAMES = ("tags", "tag", "genres", "genre", "categories", "category")
BETWEEN_TAGS = "|"  # as in MovieLens' genres


class TaggedItems(NamedTuple):
    """Distinct pairs of an item's row and a tag's number."""

    items: Rows
    tags: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ItemTags:
    """Distinct pairs of an item id and a tag, in two columns, `item` and `tag`."""

    frame: pl.DataFrame

    def of(self, item_ids: Vocabulary) -> TaggedItems:
        """The pairs as rows of a log's items and numbers of tags; items that the log does not have are left out."""
        rows, tags = item_ids.rows(self.frame["item"]), self.frame["tag"].rank("dense").to_numpy().astype(np.int64)
        return TaggedItems(rows[rows >= 0], tags[rows >= 0])

    @property
    def fingerprint(self) -> str:
        """The start of a SHA-256 of all pairs."""
        pairs = self.frame.with_columns(pl.col("item").cast(pl.String)).sort("item", "tag")
        return hashlib.sha256(repr(pairs.rows()).encode()).hexdigest()[:8]


def read_tags(source: str | os.PathLike[str] | Mapping[Any, Iterable[str]] | Any) -> ItemTags:
    """Read a CSV, TSV or Parquet file, a polars or pandas frame, or a dictionary of items and their tags.

    A table has a column of items, found by its usual names, and one of tags (`tags`, `tag`, `genres`, `category` …):
    one tag, several separated by `|`, or a list. An item may be in several rows.

    >>> read_tags({"tea": ["hot", "drink"], "milk": ["drink"]}).frame.rows()
    [('tea', 'hot'), ('tea', 'drink'), ('milk', 'drink')]
    """
    if isinstance(source, ItemTags):
        return source
    if isinstance(source, (str, os.PathLike)):
        read = read_table(Path(source))
        return _pairs(read.frame, str(source), parse_ids=read.is_text)
    if isinstance(source, Mapping):
        rows = [(item, tag) for item, tags in source.items() for tag in tags]
        return _pairs(pl.DataFrame(rows, schema=["item", "tags"], orient="row"), "tags")
    if type(source).__module__.split(".")[0] == "pandas":
        source = pl.from_pandas(source)
    if not isinstance(source, pl.DataFrame):
        raise DataError(f"tags: {type(source).__name__} is not a file, a frame or a dictionary of items and their tags")
    return _pairs(source, "tags")


def _pairs(frame: pl.DataFrame, source: str, *, parse_ids: bool = False) -> ItemTags:
    item, tags = item_column(frame.columns), first_named(TAG_NAMES, frame.columns)
    if item is None or tags is None:
        missing = "items" if item is None else "tags"
        raise DataError(
            f"{source}: no column of {missing} among {', '.join(frame.columns)!r}; name the columns item and tags"
        )
    told = frame[tags]
    several = told if isinstance(told.dtype, pl.List) else told.cast(pl.String).str.split(BETWEEN_TAGS)
    ids = read_ids(frame[item], "item", source, parse=parse_ids)
    pairs = pl.DataFrame({"item": ids, "tag": several}).explode("tag")
    pairs = pairs.with_columns(pl.col("tag").cast(pl.String).str.strip_chars())
    return ItemTags(pairs.filter(pl.col("tag") != "").unique(maintain_order=True))
