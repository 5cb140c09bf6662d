"""Cut long lists of rows into posts that the service accepts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

MOST_ROWS = 10_000  # of a post
MOST_BYTES = 8_000_000  # of a post, a little less than the service accepts


def cut(rows: Iterable[dict[str, Any]], size_of: Callable[[dict[str, Any]], int]) -> list[list[dict[str, Any]]]:
    """The rows of each post, in order; one without rows if there are none. `size_of` a row is its bytes at most."""
    parts: list[list[dict[str, Any]]] = [[]]
    size = 0
    for row in rows:
        length = size_of(row)
        if len(parts[-1]) == MOST_ROWS or size + length > MOST_BYTES:
            parts.append([])
            size = 0
        parts[-1].append(row)
        size += length
    return parts
