"""What the platform says of items: titles, tags, and what may be recommended. The model never sees it."""

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
    """Attributes by id, and by row what filters need: the rows of each tag, and the hidden ones.

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
        """The attributes of an item, or those of an item without any."""
        return self._attributes.get(item) or _NONE

    def is_deleted(self, item: str) -> bool:
        """Whether the item was deleted and not put since."""
        return item in self._attributes and self._attributes[item] is None

    @property
    def hidden(self) -> Rows:
        """The rows that must not be recommended, ascending."""
        if self._hidden_rows is None:
            self._hidden_rows = np.sort(np.fromiter(self._hidden, np.int32, len(self._hidden)))
        return self._hidden_rows

    def put(self, item: str, row: int, attributes: Attributes | None) -> None:
        """Set the attributes of an item, whose row is -1 if it has none; None deletes it."""
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
        """Items got their first event, and with it the rows from `first` on."""
        for row, item in enumerate(items, first):
            if item is not None and item in self._attributes:
                self._index(row, self._attributes[item])

    def remove_row(self, item: str, row: int) -> None:
        """An item lost its row: its last event was erased."""
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
        """The first k items with a title of which a word begins so, whatever the case and the accents."""
        wanted = _folded(prefix)
        found: dict[str, None] = {}
        at = bisect_left(self._titles, (wanted,))
        while at < len(self._titles) and len(found) < k and self._titles[at][0].startswith(wanted):
            found[self._titles[at][1]] = None
            at += 1
        return list(found)

    def _entries(self, item: str) -> list[tuple[str, str]]:
        """The title of an item from each of its words on, and whose it is."""
        title = _folded(self.of(item).title or "")
        return [(title[word.start() :], item) for word in _WORDS.finditer(title)]

    def _index(self, row: int, attributes: Attributes | None) -> None:
        if attributes is None or not attributes.available:
            self._hidden.add(row)
            self._hidden_rows = None
        for tag in attributes.tags if attributes is not None else ():
            self._tags.setdefault(tag, set()).add(row)


def _folded(text: str) -> str:
    """Text as people type it in a search.

    >>> _folded("Amélie"), _folded("Straße")
    ('amelie', 'strasse')
    """
    return "".join(filterfalse(combining, normalize("NFKD", text.casefold())))


def to_store(attributes: Attributes | None) -> dict[str, Any]:
    """As the store keeps them."""
    return {"removed": True} if attributes is None else attributes._asdict()


def from_store(kept: Mapping[str, Any]) -> Attributes | None:
    """What `to_store` was given."""
    if kept.get("removed"):
        return None
    return Attributes(kept["title"], tuple(kept["tags"]), kept["available"])
