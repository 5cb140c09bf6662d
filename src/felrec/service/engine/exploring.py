"""Places for items without events, so that they can earn their first ones. The caller holds the read lock."""

from __future__ import annotations

import hashlib
import random

from felrec.answers.types import Recommendation
from felrec.service.engine.serving_state import ServingState
from felrec.service.engine.types import Question

_TRIES = 20  # items drawn for one place until one fits


def with_explored(
    state: ServingState, question: Question, best: tuple[Recommendation, ...]
) -> tuple[Recommendation, ...]:
    """Each place is given by lot, with probability `explore`, to an item without events that passes the filters.

    The item that had the place and those after it move down. The lot depends on the user, the page and the number of
    events in the store: the same question has the same answer until something happens.
    """
    cold = state.attributes.cold
    if not question.explore or not cold:
        return best
    seed = f"{question.user}\0{question.session}\0{question.offset}\0{state.journal}"
    lots = random.Random(hashlib.sha256(seed.encode()).digest())
    excluded, mixed, waiting = set(question.exclude), list[Recommendation](), list(best)
    for _ in range(question.k):
        drawn = _draw(state, question, cold, excluded, lots) if lots.random() < question.explore else None
        if drawn is not None:
            excluded.add(drawn.id)
            mixed.append(drawn)
        elif waiting:
            mixed.append(waiting.pop(0))
    return tuple(mixed)


def _draw(
    state: ServingState, question: Question, cold: list[str], excluded: set[str], lots: random.Random
) -> Recommendation | None:
    for _ in range(_TRIES):
        name = lots.choice(cold)
        one = state.attributes.of(name)
        if name not in excluded and one.may_be_shown(state.now) and _passes(question, name, set(one.tags)):
            return Recommendation(name, 0.0, one.title, one.tags, explored=True)
    return None


def _passes(question: Question, name: str, tags: set[str]) -> bool:
    """Whether an item passes the filters of a question, as `candidates_of` and `left_out` say for items with events."""
    wanted = not question.tags or not tags.isdisjoint(question.tags)
    listed = question.candidates is None or name in question.candidates
    return wanted and listed and tags.issuperset(question.all_tags) and tags.isdisjoint(question.no_tags)
