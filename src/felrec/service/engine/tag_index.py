"""The rows of items by tag."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence

import numpy as np

from felrec.data.events import Rows


class TagIndex:
    """The rows of each tag, ascending: 4 bytes per row, and for a tag of one row no more than an entry of a dict.

    >>> tags = TagIndex()
    >>> for row in (7, 3, 5):
    ...     tags.add("folk", row)
    >>> tags.remove("folk", 5)
    >>> tags.rows(["folk", "jazz"]).tolist()
    [3, 7]
    """

    def __init__(self) -> None:
        self._rows: dict[str, int | array[int]] = {}

    def add(self, tag: str, row: int) -> None:
        """Add a row to a tag, unless it has it."""
        kept = self._rows.setdefault(tag, row)
        if isinstance(kept, int):
            if kept == row:
                return
            kept = self._rows[tag] = array("i", [kept])
        at = bisect_left(kept, row)
        if at == len(kept) or kept[at] != row:
            kept.insert(at, row)

    def remove(self, tag: str, row: int) -> None:
        """Remove a row from a tag, if it has it."""
        kept = self._rows.get(tag, -1)
        if isinstance(kept, int):
            if kept == row:
                del self._rows[tag]
        elif (at := bisect_left(kept, row)) < len(kept) and kept[at] == row:
            del kept[at]
            if not kept:
                del self._rows[tag]

    def rows(self, tags: Sequence[str]) -> Rows:
        """The rows that have at least one of the tags, ascending."""
        found = (self._rows.get(tag, ()) for tag in tags)
        parts = [np.array([kept] if isinstance(kept, int) else kept, dtype=np.int32) for kept in found]
        return np.unique(np.concatenate([*parts, np.zeros(0, np.int32)]))
