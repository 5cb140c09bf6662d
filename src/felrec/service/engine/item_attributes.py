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
    """Attributes by id, and by row what filters need: the rows of each tag, and those that are out.

    >>> catalogue = ItemAttributes({"a": Attributes("The Ants", ("nature",))}, ["a", "b"])
    >>> catalogue.put("b", 1, Attributes(available=False))
    >>> catalogue.tagged(["nature"]).tolist(), catalogue.out.tolist(), catalogue.titled("an", 5)
    ([0], [1], ['a'])
    """

    def __init__(self, attributes: Mapping[str, Attributes | None], ids: Sequence[str | None]) -> None:
        self._attributes = dict(attributes)  # None: taken out
        self._tags: dict[str, set[int]] = {}
        self._out: set[int] = set()
        self._out_rows: Rows | None = None
        self._titles = sorted(entry for item in self._attributes for entry in self._entries(item))
        rows = {name: row for row, name in enumerate(ids) if name in self._attributes}
        for name, row in rows.items():
            self._index(row, self._attributes[str(name)])

    def __contains__(self, item: str) -> bool:
        return self._attributes.get(item) is not None

    def of(self, item: str) -> Attributes:
        """The attributes of an item, or those of an item without any."""
        return self._attributes.get(item) or _NONE

    def is_taken_out(self, item: str) -> bool:
        """Whether the item was deleted and not put since."""
        return item in self._attributes and self._attributes[item] is None

    @property
    def out(self) -> Rows:
        """The rows that must not be recommended, ascending."""
        if self._out_rows is None:
            self._out_rows = np.sort(np.fromiter(self._out, np.int32, len(self._out)))
        return self._out_rows

    def put(self, item: str, row: int, attributes: Attributes | None) -> None:
        """Set the attributes of an item, whose row is -1 if it has none; None takes it out."""
        if row >= 0:
            self.disappear(item, row)
        for entry in self._entries(item):
            del self._titles[bisect_left(self._titles, entry)]
        self._attributes[item] = attributes
        for entry in self._entries(item):
            insort(self._titles, entry)
        if row >= 0:
            self.appear([item], row)

    def appear(self, items: Sequence[str], first: int) -> None:
        """Items got the rows from `first` on."""
        for row, item in enumerate(items, first):
            if item in self._attributes:
                self._index(row, self._attributes[item])

    def disappear(self, item: str, row: int) -> None:
        """An item lost its row."""
        for tag in self.of(item).tags:
            self._tags[tag].discard(row)
        if row in self._out:
            self._out.remove(row)
            self._out_rows = None

    def tagged(self, tags: Sequence[str]) -> Rows:
        """The rows of items that have at least one of the tags, ascending."""
        rows = set().union(*(self._tags.get(tag, set()) for tag in tags))
        return np.array(sorted(rows), dtype=np.int32)

    def titled(self, prefix: str, k: int) -> list[str]:
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
            self._out.add(row)
            self._out_rows = None
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
