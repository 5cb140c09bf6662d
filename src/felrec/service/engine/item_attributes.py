"""Attributes of items given by the platform: title, tags, availability. The model never uses them."""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from itertools import filterfalse
from typing import Any
from unicodedata import combining, normalize

import numpy as np

from felrec.data.events import Rows
from felrec.service.engine.types import Attributes

_NONE = Attributes()
_WORDS = re.compile(r"\w+")


class ItemAttributes:
    """Attributes by id, and for filters the rows of each tag and the hidden rows.

    >>> attributes = ItemAttributes({"a": Attributes("The Ants", ("nature",))}, ["a", "b"])
    >>> attributes.put("b", 1, Attributes(available=False))
    >>> attributes.tagged(["nature"]).tolist(), attributes.hidden.tolist(), attributes.search_titles("an", 5)
    ([0], [1], ['a'])
    """

    def __init__(self, attributes: Mapping[str, Attributes | None], ids: Sequence[str | None]) -> None:
        self._attributes = dict(attributes)  # None: deleted
        self._tags: dict[str, set[int]] = {}
        self._hidden: set[int] = set()
        self._hidden_rows: Rows | None = None
        self._titles = sorted(entry for item in self._attributes for entry in self._entries(item))
        self.add_rows(ids, 0)

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
        for entry in self._entries(item):
            del self._titles[bisect_left(self._titles, entry)]
        self._attributes[item] = attributes
        for entry in self._entries(item):
            insort(self._titles, entry)
        if row >= 0:
            self.add_rows([item], row)

    def add_rows(self, items: Sequence[str | None], first: int) -> None:
        """Index items that got the rows from `first` on with their first events."""
        for row, item in enumerate(items, first):
            if item is not None and item in self._attributes:
                self._index(row, self._attributes[item])

    def remove_row(self, item: str, row: int) -> None:
        """Remove the row of an item whose last event was erased."""
        for tag in self.of(item).tags:
            self._tags[tag].discard(row)
        if row in self._hidden:
            self._hidden.remove(row)
            self._hidden_rows = None

    def tagged(self, tags: Sequence[str]) -> Rows:
        """The rows of items that have at least one of the tags, ascending."""
        rows = set().union(*(self._tags.get(tag, set()) for tag in tags))
        return np.array(sorted(rows), dtype=np.int32)

    def search_titles(self, prefix: str, k: int) -> list[str]:
        """The first k items with a word of the title that starts with `prefix`, ignoring case and accents."""
        wanted = _folded(prefix)
        found: dict[str, None] = {}
        at = bisect_left(self._titles, (wanted,))
        while at < len(self._titles) and len(found) < k and self._titles[at][0].startswith(wanted):
            found[self._titles[at][1]] = None
            at += 1
        return list(found)

    def _entries(self, item: str) -> list[tuple[str, str]]:
        """Search entries of an item: the rest of its title from each word on, and its id."""
        title = _folded(self.of(item).title or "")
        return [(title[word.start() :], item) for word in _WORDS.finditer(title)]

    def _index(self, row: int, attributes: Attributes | None) -> None:
        if attributes is None or not attributes.available:
            self._hidden.add(row)
            self._hidden_rows = None
        for tag in attributes.tags if attributes is not None else ():
            self._tags.setdefault(tag, set()).add(row)


def _folded(text: str) -> str:
    """Text without case and accents, for searching.

    >>> _folded("Amélie"), _folded("Straße")
    ('amelie', 'strasse')
    """
    return "".join(filterfalse(combining, normalize("NFKD", text.casefold())))


def to_store(attributes: Attributes | None) -> dict[str, Any]:
    """Convert to the form in the store."""
    return {"removed": True} if attributes is None else attributes._asdict()


def from_store(kept: Mapping[str, Any]) -> Attributes | None:
    """The inverse of `to_store`."""
    if kept.get("removed"):
        return None
    return Attributes(kept["title"], tuple(kept["tags"]), kept["available"])
