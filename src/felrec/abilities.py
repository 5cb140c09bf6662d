"""What some models can do besides scoring: find the best items, compare, explain, link, forget, represent.

The service and the evaluation ask for these abilities with `isinstance`, and do without those that a model lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from felrec.data.events import RowChange, Rows
from felrec.data.pending import Pending
from felrec.recommender import Counts, ItemScoring, Queries, Recommender, Servable


class Selection(NamedTuple):
    """How many items to find for a query, and which may be found."""

    k: int
    leave_out: Rows  # ascending
    candidates: Rows | None = None  # ascending; None: the whole catalogue


class Found(NamedTuple):
    """The best items for a query."""

    rows: Rows  # best first, at most k
    scores: NDArray[np.floating]
    scored: int  # number of scores that were computed to find them


class Ranking(Protocol):
    """Finds the best items of the whole catalogue without scoring all of them."""

    def best(self, queries: Queries, selections: Sequence[Selection], hidden: Rows) -> list[Found]:
        """The items with the highest scores.

        `hidden` are items to leave out of every answer, ascending. Equal scores are in ascending order of rows.
        """
        ...

    def renew(self, change: RowChange) -> None:
        """Follow a change that was applied to the recommender."""
        ...


@runtime_checkable
class TopK(ItemScoring, Protocol):
    """A recommender that finds the best items without scoring all of them."""

    @property
    def prunes(self) -> bool:
        """Whether it can do so on this machine."""
        ...

    def ranking(self) -> Ranking:
        """Finds the best items of the present weights and state, and after changes that it follows."""
        ...


class Linked(NamedTuple):
    """The items that are most similar to an item."""

    rows: Rows  # most similar first, without the item itself
    scores: NDArray[np.floating]


@runtime_checkable
class Linking(Recommender, Protocol):
    """A recommender that may count which items the same users take: similar items, audiences and neighbours by that."""

    def linked_items(self, item: int) -> Linked | None:
        """The items that were counted together with an item; None if it does not count that."""
        ...

    def users_near_item(self, item: int) -> Rows | None:
        """Users who lately took items that are linked to an item: a few hundred at most; None if it does not count."""
        ...

    def users_near_user(self, user: int) -> Rows | None:
        """Users who lately took the items of a user: a few hundred at most; None if it does not count."""
        ...


class Part(NamedTuple):
    """What one signal adds to a score."""

    signal: str
    gain: float  # by how much the score would be lower if the signal knew nothing of the user and the item
    leads: list[tuple[int, float]]  # the user's items that lead to the item, and how often; those that count most first


@runtime_checkable
class Explaining(Recommender, Protocol):
    """A recommender that can say what its scores are made of."""

    def explain(self, user: int, time: float, items: Rows) -> list[list[Part]]:
        """For each item, what raises its score for a user, most first."""


class Comparison(NamedTuple):
    """How the target of each query compares with the other items."""

    better: Counts  # (B,) items with a higher score
    equal: Counts  # (B,) items with the same score, the target included
    target: NDArray[np.floating]  # (B,) its score
    others: NDArray[np.floating]  # (B, S) scores of the items that were asked for


@runtime_checkable
class Comparing(Recommender, Protocol):
    """A recommender that ranks one item per query without returning the scores of all."""

    def compare(
        self, queries: Queries, candidates: Rows, targets: Rows, leave_out: Pending, others: Rows
    ) -> Comparison | None:
        """Compare targets (B,) with all candidates but those in `leave_out`; None if only `score` can tell.

        The result follows from `score`, within rounding. `leave_out` are candidates, ascending for each query, without
        its target. `others` (B, S) are further candidates whose scores are wanted.
        """
        ...


@dataclass(frozen=True)
class ErasureContext:
    """Some items of a user, and their events without that user: an erasure goes through the items in pieces."""

    items: Rows  # (T,) distinct, ascending
    taken: Counts  # (T,) number of events that are removed
    left: Counts  # (T,) number of events that stay
    order: Rows  # (E,) items of all removed events, oldest first, also those of other pieces
    newest: Callable[[int], Pending]  # users of the last n remaining events of each item, oldest first


@runtime_checkable
class Forgetting(Servable, Protocol):
    """A servable recommender that can erase one user without applying all other events again."""

    def forget(self, user: int, context: ErasureContext) -> RowChange:
        """The rows that erasing a user would write: those of the user and of the items. Does not write them."""
        ...


@runtime_checkable
class Choosable(Recommender, Protocol):
    """A recommender with settings that are chosen on validation (by hr@10)."""

    def choices(self) -> Iterator[tuple[dict[str, Any], Recommender]]:
        """The settings to try, each with a new recommender."""
        ...


@runtime_checkable
class Representing(Recommender, Protocol):
    """A recommender with one vector per user and per item, to compare them."""

    def user_vectors(self, rows: Rows) -> Tensor:
        """Vectors (B, D) of users, unit length or zero."""
        ...

    def item_vectors(self, rows: Rows) -> Tensor:
        """Vectors (B, D) of items, unit length or zero."""
        ...
