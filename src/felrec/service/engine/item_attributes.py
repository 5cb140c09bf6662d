"""Attributes of items given by the platform: title, tags, availability, group. The model never uses them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from felrec.data.events import Rows
from felrec.service.engine.tag_index import TagIndex
from felrec.service.engine.title_index import TitleIndex
from felrec.service.engine.types import Attributes

_NONE = Attributes()


class _Hidden(NamedTuple):
    """The rows that must not be recommended, and the times between which they stay the same."""

    rows: Rows  # ascending
    since: float
    until: float


class ItemAttributes:
    """Attributes by id, and for filters the rows of each tag and the hidden rows.

    >>> attributes = ItemAttributes({"a": Attributes("The Ants", ("nature",))}, ["a", "b", "c"])
    >>> attributes.put("b", 1, Attributes(available=False))
    >>> attributes.put("c", 2, Attributes(expires=50.0))
    >>> attributes.tagged(["nature"]).tolist(), attributes.search_titles("an", 5)
    ([0], ['a'])
    >>> attributes.hidden_at(49.0).tolist(), attributes.hidden_at(50.0).tolist()
    ([1], [1, 2])
    """

    def __init__(self, attributes: Mapping[str, Attributes | None], ids: Sequence[str | None]) -> None:
        self._attributes = dict(attributes)  # None: deleted
        self._tags = TagIndex()
        self._hidden: set[int] = set()  # at any time
        self._timed: dict[int, Attributes] = {}  # by row, those that are hidden at some time
        self._hidden_rows: _Hidden | None = None
        self._cold: dict[str, None] = {}  # items without events, in the order in which they were put
        self.groups = 0  # items that are a variant of another one
        self._titles = TitleIndex({item: self.of(item).title for item in self._attributes})
        for item, kept in self._attributes.items():
            self._count(item, kept, 1)
        self.add_rows(ids, 0)

    def __len__(self) -> int:
        """Number of items with attributes, and of deleted ones, which stay deleted when they get events."""
        return len(self._attributes)

    def __contains__(self, item: str) -> bool:
        return self._attributes.get(item) is not None

    def of(self, item: str) -> Attributes:
        """The attributes of an item, or the defaults if it has none."""
        return self._attributes.get(item) or _NONE

    def is_deleted(self, item: str) -> bool:
        """Whether the item was deleted and not put again since."""
        return item in self._attributes and self._attributes[item] is None

    def hidden_at(self, now: float) -> Rows:
        """The rows that must not be recommended at a time, ascending. May be called by several readers at once."""
        kept = self._hidden_rows
        if kept is None or not kept.since <= now < kept.until:
            kept = self._hidden_rows = self._computed(now)
        return kept.rows

    def _computed(self, now: float) -> _Hidden:
        hidden = self._hidden.union(row for row, one in self._timed.items() if not one.may_be_shown(now))
        times = [time for one in self._timed.values() for time in (one.available_from, one.expires) if time is not None]
        since = max((time for time in times if time <= now), default=-math.inf)
        until = min((time for time in times if time > now), default=math.inf)
        return _Hidden(np.sort(np.fromiter(hidden, np.int32, len(hidden))), since, until)

    @property
    def cold(self) -> list[str]:
        """Items without events."""
        return list(self._cold)

    def group_of(self, item: str) -> str:
        """The group of items of which one is listed; most items are a group of their own."""
        return self.of(item).variant_of or item

    def put(self, item: str, row: int, attributes: Attributes | None) -> None:
        """Set the attributes of an item (row -1: without events); None deletes it."""
        if row >= 0:
            self.remove_row(item, row)
        self._count(item, self._attributes.get(item), -1)
        self._attributes[item] = attributes
        self._count(item, attributes, 1)
        self._titles.put(item, self.of(item).title)
        if row >= 0:
            self.add_rows([item], row)

    def add_rows(self, items: Sequence[str | None], first: int) -> None:
        """Index items that got the rows from `first` on with their first events."""
        for row, item in enumerate(items, first):
            if item is not None and item in self._attributes:
                self._cold.pop(item, None)
                self._index(row, self._attributes[item])

    def forget(self, item: str, row: int) -> None:
        """Remove the attributes of an item whose last event was erased."""
        self.remove_row(item, row)
        self._count(item, self._attributes.get(item), -1)
        self._titles.put(item, None)
        self._attributes.pop(item, None)

    def remove_row(self, item: str, row: int) -> None:
        """Remove the row of an item from the filters."""
        for tag in self.of(item).tags:
            self._tags.remove(tag, row)
        self._hidden.discard(row)
        self._timed.pop(row, None)
        self._hidden_rows = None

    def tagged(self, tags: Sequence[str]) -> Rows:
        """The rows of items that have at least one of the tags, ascending."""
        return self._tags.rows(tags)

    def with_all(self, tags: Sequence[str]) -> Rows:
        """The rows of items that have all of the tags, ascending."""
        rows = self._tags.rows(tags[:1])
        for tag in tags[1:]:
            rows = np.intersect1d(rows, self._tags.rows([tag]), assume_unique=True)
        return rows

    def search_titles(self, prefix: str, k: int) -> list[str]:
        """The first k items with a word of the title that starts with `prefix`, ignoring case and accents."""
        return self._titles.search(prefix, k)

    def _index(self, row: int, attributes: Attributes | None) -> None:
        if attributes is None or not attributes.available:
            self._hidden.add(row)
        elif attributes.available_from is not None or attributes.expires is not None:
            self._timed[row] = attributes
        self._hidden_rows = None
        for tag in attributes.tags if attributes is not None else ():
            self._tags.add(tag, row)

    def _count(self, item: str, attributes: Attributes | None, one: int) -> None:
        """Count an item among those without events and among variants, or no longer."""
        self._cold.pop(item, None)
        if attributes is not None:
            self.groups += one * (attributes.variant_of is not None)
            if one > 0:
                self._cold[item] = None


def to_store(attributes: Attributes | None) -> dict[str, Any]:
    """Convert to the form in the store: what is unset and was unknown to older versions is left out."""
    if attributes is None:
        return {"removed": True}
    return {name: value for name, value in attributes._asdict().items() if value is not None or name == "title"}


def from_store(kept: Mapping[str, Any]) -> Attributes | None:
    """The inverse of `to_store`."""
    if kept.get("removed"):
        return None
    given = {name: value for name, value in kept.items() if name in Attributes._fields}
    return Attributes(**{**given, "tags": tuple(kept["tags"])})
