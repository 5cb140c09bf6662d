"""Attributes of items given by the platform: title, tags, availability. The model never uses them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from felrec.data.events import Rows
from felrec.service.engine.tag_index import TagIndex
from felrec.service.engine.title_index import TitleIndex
from felrec.service.engine.types import Attributes

_NONE = Attributes()


class ItemAttributes:
    """Attributes by id, and for filters the rows of each tag and the hidden rows.

    >>> attributes = ItemAttributes({"a": Attributes("The Ants", ("nature",))}, ["a", "b"])
    >>> attributes.put("b", 1, Attributes(available=False))
    >>> attributes.tagged(["nature"]).tolist(), attributes.hidden.tolist(), attributes.search_titles("an", 5)
    ([0], [1], ['a'])
    """

    def __init__(self, attributes: Mapping[str, Attributes | None], ids: Sequence[str | None]) -> None:
        self._attributes = dict(attributes)  # None: deleted
        self._tags = TagIndex()
        self._hidden: set[int] = set()
        self._hidden_rows: Rows | None = None
        self._titles = TitleIndex({item: self.of(item).title for item in self._attributes})
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

    @property
    def hidden(self) -> Rows:
        """The rows that must not be recommended, ascending."""
        if self._hidden_rows is None:
            self._hidden_rows = np.sort(np.fromiter(self._hidden, np.int32, len(self._hidden)))
        return self._hidden_rows

    def put(self, item: str, row: int, attributes: Attributes | None) -> None:
        """Set the attributes of an item (row -1: without events); None deletes it."""
        if row >= 0:
            self.remove_row(item, row)
        self._attributes[item] = attributes
        self._titles.put(item, self.of(item).title)
        if row >= 0:
            self.add_rows([item], row)

    def add_rows(self, items: Sequence[str | None], first: int) -> None:
        """Index items that got the rows from `first` on with their first events."""
        for row, item in enumerate(items, first):
            if item is not None and item in self._attributes:
                self._index(row, self._attributes[item])

    def forget(self, item: str, row: int) -> None:
        """Remove the attributes of an item whose last event was erased."""
        self.remove_row(item, row)
        self._titles.put(item, None)
        self._attributes.pop(item, None)

    def remove_row(self, item: str, row: int) -> None:
        """Remove the row of an item from the filters."""
        for tag in self.of(item).tags:
            self._tags.remove(tag, row)
        if row in self._hidden:
            self._hidden.remove(row)
            self._hidden_rows = None

    def tagged(self, tags: Sequence[str]) -> Rows:
        """The rows of items that have at least one of the tags, ascending."""
        return self._tags.rows(tags)

    def search_titles(self, prefix: str, k: int) -> list[str]:
        """The first k items with a word of the title that starts with `prefix`, ignoring case and accents."""
        return self._titles.search(prefix, k)

    def _index(self, row: int, attributes: Attributes | None) -> None:
        if attributes is None or not attributes.available:
            self._hidden.add(row)
            self._hidden_rows = None
        for tag in attributes.tags if attributes is not None else ():
            self._tags.add(tag, row)


def to_store(attributes: Attributes | None) -> dict[str, Any]:
    """Convert to the form in the store."""
    return {"removed": True} if attributes is None else attributes._asdict()


def from_store(kept: Mapping[str, Any]) -> Attributes | None:
    """The inverse of `to_store`."""
    if kept.get("removed"):
        return None
    return Attributes(kept["title"], tuple(kept["tags"]), kept["available"])
