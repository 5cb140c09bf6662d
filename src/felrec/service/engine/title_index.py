"""Finds items by the words of their titles, at a cost proportional to the bytes of the titles."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, filterfalse, islice
from unicodedata import combining, normalize

import numpy as np

SEARCHABLE = 256  # characters of a title, before and after folding
_PER_CHARACTER = 4  # folded characters per character of a title: some unfold into 18
_COMPARED = 32  # bytes of a word and what follows it by which entries are sorted
_SCANNED = 10_000  # entries that a search looks at, so that many equal titles cannot make it slow
_CHUNK = 8_192  # most entries of a chunk: to insert one moves no more than these
_WORDS = re.compile(r"\w+")


class TitleIndex:
    """An entry for each word of each title: a number that refers to the folded title instead of copying it.

    >>> titles = TitleIndex({"a": "The Ants", "b": "An Ant's Life"})
    >>> titles.search("ant", 5), titles.search("an ant", 5)
    (['b', 'a'], ['b'])
    >>> titles.put("b", None)
    >>> titles.search("ant", 5)
    ['a']
    """

    def __init__(self, titles: Mapping[str, str | None]) -> None:
        self._texts: list[str] = []  # folded titles by number; empty: free
        self._ids: list[str] = []
        self._numbers: dict[str, int] = {}
        self._free: list[int] = []
        # An entry is the number of a title and the place of a word; entries are sorted by `_order`, in chunks.
        self._chunks = self._sorted(entry for item, title in titles.items() for entry in self._added(item, title))

    def put(self, item: str, title: str | None) -> None:
        """Set the title of an item; None removes it."""
        if item in self._numbers:
            self._remove(item)
        for entry in self._added(item, title):
            self._insert(entry)

    def search(self, prefix: str, k: int) -> list[str]:
        """The first k items with a word from which on the title starts with `prefix`, ignoring case and accents."""
        wanted = folded(prefix)
        start = _start(wanted)
        found: dict[str, None] = {}
        for entry in islice(self._from(start), _SCANNED):
            if len(found) == k or not self._key(entry).startswith(start):
                break
            number, place = divmod(entry, SEARCHABLE)
            if self._texts[number].startswith(wanted, place):
                found[self._ids[number]] = None
        return list(found)

    def _from(self, start: bytes) -> Iterator[int]:
        """The entries from a key on."""
        chunk, at = self._find((start, -1))
        return chain(self._chunks[chunk][at:], chain.from_iterable(islice(self._chunks, chunk + 1, None)))

    def _added(self, item: str, title: str | None) -> list[int]:
        """Number a title that has words, and return its entries."""
        text = folded(title or "")
        places = [word.start() for word in _WORDS.finditer(text)]
        if not places:
            return []
        if self._free:
            number = self._free.pop()
            self._texts[number], self._ids[number] = text, item
        else:
            number = len(self._texts)
            self._texts.append(text)
            self._ids.append(item)
        self._numbers[item] = number
        return [number * SEARCHABLE + place for place in places]

    def _insert(self, entry: int) -> None:
        number, at = self._find(self._order(entry))
        chunk = self._chunks[number]
        chunk.insert(at, entry)
        if len(chunk) > _CHUNK:
            self._chunks[number : number + 1] = chunk[: _CHUNK // 2], chunk[_CHUNK // 2 :]

    def _remove(self, item: str) -> None:
        title = self._numbers.pop(item)
        for word in _WORDS.finditer(self._texts[title]):
            number, at = self._find(self._order(title * SEARCHABLE + word.start()))
            del self._chunks[number][at]
            if not self._chunks[number] and len(self._chunks) > 1:
                del self._chunks[number]
        self._texts[title] = self._ids[title] = ""
        self._free.append(title)

    def _find(self, order: tuple[bytes, int]) -> tuple[int, int]:
        """The chunk of an entry and the place in it, whether the entry is there or not."""
        after = bisect_right(self._chunks, order, 1, key=lambda chunk: self._order(chunk[0]))
        return after - 1, bisect_left(self._chunks[after - 1], order, key=self._order)

    def _order(self, entry: int) -> tuple[bytes, int]:
        return self._key(entry), entry

    def _key(self, entry: int) -> bytes:
        number, place = divmod(entry, SEARCHABLE)
        return _start(self._texts[number][place : place + _COMPARED])

    def _sorted(self, entries: Iterable[int]) -> list[array[int]]:
        """Chunks of ascending entries, sorted by keys in one block of bytes: as objects they take far more memory."""
        numbers = array("q", entries)
        keys = np.fromiter(map(self._key, numbers), f"S{_COMPARED}", len(numbers))
        ordered = np.frombuffer(numbers, np.int64)[keys.argsort(kind="stable")]
        half = _CHUNK // 2
        return [array("q", ordered[first : first + half].tobytes()) for first in range(0, len(ordered) or 1, half)]


def _start(text: str) -> bytes:
    return text.encode(errors="surrogatepass")[:_COMPARED]  # sorted like the text itself


def folded(text: str) -> str:
    """The searchable part of a text, without case and accents.

    >>> folded("Amélie"), folded("Straße")
    ('amelie', 'strasse')
    """
    text = text[:SEARCHABLE]
    if text.isascii():
        return text.lower().replace("\0", " ")
    plain = "".join(filterfalse(combining, normalize("NFKD", text.casefold())))
    return plain.replace("\0", " ")[: min(SEARCHABLE, _PER_CHARACTER * len(text))]
