"""Lists for everybody: trending, popular and newest items. The caller holds the read lock."""

from __future__ import annotations

from typing import Literal

import numpy as np

from felrec.answers.types import BestItems, FoundItem, Recommendation
from felrec.data.events import Rows
from felrec.service.engine.exploring import with_explored
from felrec.service.engine.filters import NOTHING, Places, candidates_of, left_out, not_for
from felrec.service.engine.presenters import scored_items
from felrec.service.engine.ranking import Scores
from felrec.service.engine.serving_state import ServingState
from felrec.service.engine.types import Question

Sorting = Literal["trending", "popular", "newest"]


def listed(state: ServingState, sort: Sorting, question: Question, hours: float | None) -> list[FoundItem]:
    """The items with the highest values that pass the filters."""
    return [
        _listed(state, row, value) for row, value in _highest(state, _values(state, sort, hours), question, NOTHING)
    ]


def trending_for(state: ServingState, question: Question) -> BestItems:
    """A list of trending items in place of the model's, with the same rules."""
    user = state.users.row(question.user) if question.user is not None else -1
    highest = _highest(state, _values(state, "trending", None), question, not_for(state, question, user, NOTHING))
    items = with_explored(state, question, scored_items(state, highest, Recommendation))
    return BestItems(user >= 0, items, candidates_of(state, question)[1], user=question.user)


def _highest(state: ServingState, values: Scores, question: Question, seen: Rows) -> list[tuple[int, float]]:
    """The rows with the highest values that pass the filters, and their values."""
    rows = np.flatnonzero(state.index.item_events).astype(np.int32)
    candidates, _ = candidates_of(state, question)
    if candidates is not None:
        rows = np.intersect1d(rows, candidates)
    out = [left_out(state, question, seen), state.attributes.hidden_at(state.now)]
    rows = np.setdiff1d(rows, np.concatenate(out))
    values = values[rows]
    rows, values = rows[values > 0], values[values > 0]
    order = np.argsort(-values, kind="stable")
    places, found = Places(state, question.per_tag), list[tuple[int, float]]()
    for at in order.tolist():
        if len(found) == question.offset + question.k:
            break
        if not Places.needed(state, question) or places.take(int(rows[at])):
            found.append((int(rows[at]), float(values[at])))
    return found[question.offset :]


def _values(state: ServingState, sort: Sorting, hours: float | None) -> Scores:
    """Of every row, what the list is sorted by; 0: not listed."""
    count = len(state.items)
    events = _events_since(state, hours, context=sort == "newest")
    if sort == "popular":
        return events
    if sort == "newest":
        values = np.arange(1, count + 1, dtype=np.float64)  # rows are numbered by their first event
    else:
        values = state.popularity.of(np.arange(count, dtype=np.int32))
    return np.where(events > 0, values, 0)


def _events_since(state: ServingState, hours: float | None, context: bool) -> Scores:
    """The events of each item that count, or also those that are context; never those against it."""
    index = state.index
    if hours is None and not index.weighted:
        return index.item_events.astype(np.float64)
    wanted = index.favourable if context else index.counts
    if hours is not None:
        wanted = wanted & (index.times > state.question_time - 3_600 * hours)
    places = np.flatnonzero(wanted)
    events = np.bincount(index.items[places], weights=index.events_at(places), minlength=len(state.items))
    return events.astype(np.float64)  # without places, bincount gives integers


def _listed(state: ServingState, row: int, value: float) -> FoundItem:
    name = state.items.name(row)
    one = state.attributes.of(name)
    return FoundItem(name, one.title, int(state.index.item_events[row]), one.tags, value)
