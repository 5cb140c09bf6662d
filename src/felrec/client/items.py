"""Items as callers have them, dictionaries or a frame, as rows of posts that are not too long."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from numbers import Integral, Real
from typing import Any

from felrec.answers.types import ItemsReceipt
from felrec.client.posts import cut
from felrec.errors import DataError

ItemRow = Mapping[str, Any]
"""`id` and attributes: `title`, `tags`, `available`, `available_from`, `expires`, `variant_of`; also by usual names of
columns, such as `item_id`, `name` and `genres`."""


def item_posts(items: Iterable[ItemRow] | Any) -> list[list[dict[str, Any]]]:
    """The rows of a frame or of dictionaries, without values that are missing, cut into posts.

    >>> item_posts([{"id": "tea", "title": "Tea", "expires": float("nan")}])
    [[{'id': 'tea', 'title': 'Tea'}]]
    """
    rows = _of_frame(items) if hasattr(items, "columns") else list(items)
    if bad := next((row for row in rows if not isinstance(row, Mapping)), None):
        raise DataError(f"item {bad!r}: give a dictionary with an id and attributes")
    given = [{str(name): _plain(value, row) for name, value in row.items() if _is_there(value)} for row in rows]
    return cut(given, lambda row: 2 + len(json.dumps(row, ensure_ascii=False).encode(errors="replace")))


def joined(posts: Sequence[Sequence[Any]], receipts: Sequence[ItemsReceipt]) -> ItemsReceipt:
    """One receipt of all posts; rows are counted through."""
    rejected, start, ignored = [], 0, Counter[str]()
    for rows, receipt in zip(posts, receipts, strict=True):
        ignored.update(receipt.ignored or {})
        rejected += [replace(one, row=start + one.row) for one in receipt.rejected]
        start += len(rows)
    accepted = sum(one.accepted for one in receipts)
    return ItemsReceipt(accepted, tuple(rejected), receipts[-1].described_items, dict(ignored) or None)


def _of_frame(frame: Any) -> list[dict[str, Any]]:
    """The rows of a pandas or polars frame."""
    names = list(map(str, frame.columns))
    columns = [frame[name].to_list() for name in frame.columns]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _is_there(value: object) -> bool:
    """Whether a value is not missing: NaN and pandas' NaT are not equal to themselves."""
    return value is not None and not (isinstance(value, Real | date) and value != value)


def _plain(value: Any, row: ItemRow) -> Any:
    """A value as JSON has it."""
    if isinstance(value, str | bool):
        return value
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Real):
        return int(value) if isinstance(value, Integral) else float(value)
    if isinstance(value, Iterable) and not isinstance(value, Mapping):
        return [_plain(one, row) for one in value]
    raise DataError(f"item {row!r}: {type(value).__name__} is no value of an attribute")
