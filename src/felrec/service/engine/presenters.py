"""Convert rows to answers with ids and titles. The caller holds the read lock."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

from felrec.answers.types import FoundItem, FoundUser, HistoryEntry, NearItem, NearUser
from felrec.service.engine.serving_state import ServingState

ItemType = TypeVar("ItemType", bound=NearItem)


def scored_items(state: ServingState, best: Sequence[tuple[int, float]], kind: type[ItemType]) -> tuple[ItemType, ...]:
    """Items with their scores, titles and tags."""
    named = [(state.items.name(row), score) for row, score in best]
    attributes = [state.attributes.of(name) for name, _ in named]
    return tuple(kind(*one, of.title, of.tags) for one, of in zip(named, attributes, strict=True))


def scored_users(state: ServingState, best: Sequence[tuple[int, float]]) -> list[NearUser]:
    """Users with their scores."""
    return [NearUser(state.users.name(row), score) for row, score in best]


def history_entries(state: ServingState, items: Sequence[int], times: Sequence[float]) -> tuple[HistoryEntry, ...]:
    """Entries of a history; a time of NaN is unknown."""
    names = [state.items.name(item) for item in items]
    return tuple(
        HistoryEntry(name, state.attributes.of(name).title, None if math.isnan(moment) else moment)
        for name, moment in zip(names, times, strict=True)
    )


def found_users(state: ServingState, rows: Sequence[int]) -> list[FoundUser]:
    """Search results for users."""
    return [FoundUser(state.users.name(row), int(state.index.user_events[row])) for row in rows]


def found_item(state: ServingState, name: str) -> FoundItem:
    """The search result for an item, with or without events."""
    row = state.items.row(name)
    events = int(state.index.item_events[row]) if row >= 0 else 0
    return FoundItem(name, state.attributes.of(name).title, events)
