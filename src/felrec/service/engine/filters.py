"""Which items may be in a list. The caller holds the read lock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from felrec.data.events import Rows
from felrec.service.engine.serving_state import ServingState
from felrec.service.engine.types import Question

NOTHING = np.zeros(0, dtype=np.int32)


def known_items(state: ServingState, names: Sequence[str]) -> tuple[Rows, tuple[str, ...]]:
    """The rows of items, in order, and the names of unknown items."""
    if not names:  # a question without a session
        return NOTHING, ()
    rows = state.items.rows(names)
    return rows[rows >= 0], tuple(name for name, row in zip(names, rows.tolist(), strict=True) if row < 0)


def candidates_of(state: ServingState, question: Question) -> tuple[Rows | None, tuple[str, ...]]:
    """The candidate rows, ascending, or None for all; and the names of unknown items."""
    attributes, rows = state.attributes, None
    ignored: tuple[str, ...] = ()
    if question.candidates is not None:
        known, ignored = known_items(state, question.candidates)
        rows = np.unique(known)
    for wanted, tagged in ((question.tags, attributes.tagged), (question.all_tags, attributes.with_all)):
        if wanted:
            rows = tagged(wanted) if rows is None else np.intersect1d(rows, tagged(wanted))
    return rows, ignored


def not_for(state: ServingState, question: Question, user: int, session: Rows) -> Rows:
    """The rows that a user must not get: what they have, or only what they rejected; -1: a session without a user."""
    if state.model.exclude_seen if question.exclude_seen is None else question.exclude_seen:
        return state.index.seen(user) if user >= 0 else session
    return state.index.rejected(user) if user >= 0 else NOTHING


def left_out(state: ServingState, question: Question, seen: Rows) -> Rows:
    """The rows that must not be listed, ascending: what the user has, and what the question excludes."""
    if not question.exclude and not question.no_tags:
        return np.sort(seen)
    excluded, _ = known_items(state, question.exclude)
    return np.unique(np.concatenate([seen, excluded, state.attributes.tagged(question.no_tags)]))


class Places:
    """The places of one list: at most one item of a group, and so many of a tag."""

    def __init__(self, state: ServingState, per_tag: int | None) -> None:
        self._attributes, self._names, self._per_tag = state.attributes, state.items, per_tag
        self._groups: set[str] = set()
        self._tags: Counter[str] = Counter()

    @classmethod
    def needed(cls, state: ServingState, question: Question) -> bool:
        """Whether some of the best items may have to give way to others."""
        return question.per_tag is not None or state.attributes.groups > 0

    def take(self, row: int) -> bool:
        """Give a place to an item, if it fits."""
        name = self._names.name(row)
        tags, group = self._attributes.of(name).tags, self._attributes.group_of(name)
        if group in self._groups or (self._per_tag and any(self._tags[tag] >= self._per_tag for tag in tags)):
            return False
        self._groups.add(group)
        self._tags.update(tags)
        return True
