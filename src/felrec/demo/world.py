"""A world: the events and the items that a demo shows."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass

from felrec.data.lazy_polars import pl
from felrec.service.engine.types import Attributes


@dataclass(frozen=True)
class World:
    """Events, and titles and tags of the items."""

    events: pl.DataFrame  # user, item, timestamp; ids are strings
    attributes: dict[str, Attributes]
    source: str


def most_frequent(events: pl.DataFrame, column: str, number: int) -> pl.DataFrame:
    """The events of the users or items with most events."""
    kept = events.group_by(column).len().sort("len", column, descending=True).head(number)
    return events.join(kept, on=column, how="semi", maintain_order="left")


def until_now(events: pl.DataFrame) -> pl.DataFrame:
    """Shift all times so that the last event was a minute ago, because the page shows how long ago events were."""
    return events.with_columns(pl.col("timestamp") + int(time.time() - 60) - pl.col("timestamp").max())


def told_apart(attributes: dict[str, Attributes]) -> dict[str, Attributes]:
    """The same with the id behind every title that several items have.

    >>> told_apart({"7": Attributes("Milk"), "8": Attributes("Milk"), "9": Attributes("Tea")})["8"].title
    'Milk (8)'
    """
    uses = Counter(given.title for given in attributes.values())
    return {
        item: given._replace(title=f"{given.title} ({item})") if uses[given.title] > 1 else given
        for item, given in attributes.items()
    }
