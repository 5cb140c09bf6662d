"""Reports of what became of recommendations, as rows of posts that are not too long."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from felrec.answers.statistics import FeedbackReceipt
from felrec.client.posts import cut
from felrec.errors import DataError

Kind = Literal["impression", "click"]
Report = tuple[str, Kind] | tuple[str, Kind, int] | Mapping[str, Any]
"""The ticket of a list, whether places were shown or clicked, and the place from 0; without one all were shown."""
_FIELDS = ("ticket", "kind", "position")


def report_posts(reports: Iterable[Report]) -> list[list[dict[str, Any]]]:
    """The rows of posts.

    >>> report_posts([("t", "impression"), ("t", "click", 2)])
    [[{'ticket': 't', 'kind': 'impression'}, {'ticket': 't', 'kind': 'click', 'position': 2}]]
    """
    return cut(map(_row, reports), lambda row: 200)  # bytes: a ticket has some forty


def joined(posts: Sequence[Sequence[Any]], receipts: Sequence[FeedbackReceipt]) -> FeedbackReceipt:
    """One receipt of all posts; rows are counted through."""
    rejected, start = [], 0
    for rows, receipt in zip(posts, receipts, strict=True):
        rejected += [replace(one, row=start + one.row) for one in receipt.rejected]
        start += len(rows)
    accepted, repeated = sum(one.accepted for one in receipts), sum(one.repeated for one in receipts)
    return FeedbackReceipt(accepted, repeated, tuple(rejected))


def _row(report: Report) -> dict[str, Any]:
    if isinstance(report, Mapping):
        return dict(report)
    if not isinstance(report, tuple | list) or len(report) not in (2, 3):
        raise DataError(f"report {report!r}: give (ticket, kind) or (ticket, kind, position), or a dictionary")
    return dict(zip(_FIELDS, report, strict=False))
