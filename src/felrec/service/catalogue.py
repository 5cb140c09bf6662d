"""What the platform says of items: titles, tags, and what may be recommended. The model never sees it."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from felrec.data.events import Rows
from felrec.service.records import Attributes

_NONE = Attributes()
_WORDS = re.compile(r"\w+")


class Catalogue:
    """Attributes by id, and by row what filters need: the rows of each tag, and those that are out.

    >>> catalogue = Catalogue({"a": Attributes("The Ants", ("nature",))}, ["a", "b"])
    >>> catalogue.put("b", 1, Attributes(available=False))
    >>> catalogue.tagged(["nature"]).tolist(), catalogue.out.tolist(), catalogue.titled("an", 5)
    ([0], [1], ['a'])
    """

    def __init__(self, attributes: Mapping[str, Attributes | None], ids: Sequence[str | None]) -> None:
        self._attributes = dict(attributes)  # None: taken out
        self._tags: dict[str, set[int]] = {}
        self._out: set[int] = set()
        self._titles: list[tuple[str, str]] | None = None  # from each word on, and whose
        rows = {name: row for row, name in enumerate(ids) if name in self._attributes}
        for name, row in rows.items():
            self._index(row, self._attributes[str(name)])
        self.out = np.zeros(0, dtype=np.int32)  # rows that must not be recommended
        self._list_out()

    def __contains__(self, item: str) -> bool:
        return self._attributes.get(item) is not None

    def of(self, item: str) -> Attributes:
        """The attributes of an item, or those of an item without any."""
        return self._attributes.get(item) or _NONE

    def is_taken_out(self, item: str) -> bool:
        """Whether the item was deleted and not put since."""
        return item in self._attributes and self._attributes[item] is None

    def put(self, item: str, row: int, attributes: Attributes | None) -> None:
        """Set the attributes of an item, whose row is -1 if it has none; None takes it out."""
        if row >= 0:
            self.disappear(item, row)
        self._attributes[item] = attributes
        self._titles = None
        if row >= 0:
            self.appear([item], row)

    def appear(self, items: Sequence[str], first: int) -> None:
        """Items got the rows from `first` on."""
        for row, item in enumerate(items, first):
            if item in self._attributes:
                self._index(row, self._attributes[item])
        self._list_out()

    def disappear(self, item: str, row: int) -> None:
        """An item lost its row."""
        for tag in self.of(item).tags:
            self._tags[tag].discard(row)
        self._out.discard(row)
        self._list_out()

    def tagged(self, tags: Sequence[str]) -> Rows:
        """The rows of items that have at least one of the tags, ascending."""
        rows = set().union(*(self._tags.get(tag, set()) for tag in tags))
        return np.array(sorted(rows), dtype=np.int32)

    def titled(self, prefix: str, k: int) -> list[str]:
        """The first k items with a title of which a word begins so, whatever the case."""
        if self._titles is None:
            titles = ((a.title.casefold(), item) for item, a in self._attributes.items() if a is not None and a.title)
            words = ((title, item, word.start()) for title, item in titles for word in _WORDS.finditer(title))
            self._titles = sorted((title[start:], item) for title, item, start in words)
        wanted = prefix.casefold()
        found: dict[str, None] = {}
        at = bisect_left(self._titles, (wanted,))
        while at < len(self._titles) and len(found) < k and self._titles[at][0].startswith(wanted):
            found[self._titles[at][1]] = None
            at += 1
        return list(found)

    def _list_out(self) -> None:
        if len(self._out) != len(self.out) or self._out.difference(self.out.tolist()):
            self.out = np.array(sorted(self._out), dtype=np.int32)

    def _index(self, row: int, attributes: Attributes | None) -> None:
        if attributes is None or not attributes.available:
            self._out.add(row)
        for tag in attributes.tags if attributes is not None else ():
            self._tags.setdefault(tag, set()).add(row)


def to_store(attributes: Attributes | None) -> dict[str, Any]:
    """As the store keeps them."""
    return {"removed": True} if attributes is None else attributes._asdict()


def from_store(kept: Mapping[str, Any]) -> Attributes | None:
    """What `to_store` was given."""
    if kept.get("removed"):
        return None
    return Attributes(kept["title"], tuple(kept["tags"]), kept["available"])
