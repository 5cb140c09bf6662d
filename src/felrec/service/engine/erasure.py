"""Erase a user: the changes on disk and in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from felrec.answers.types import Erasure
from felrec.data.events import RowChange, all_rows
from felrec.item_score_cache import ItemScoreCache
from felrec.recommender import ErasureContext, Forgetting, Recommender, Servable
from felrec.service.engine.serving_state import ServingState
from felrec.store.protocol import Removal


@dataclass(frozen=True)
class Plan:
    """The planned changes of an erasure."""

    removal: Removal
    erasure: Erasure
    apply: Callable[[], None]  # changes memory; call it after the removal is on disk


def plan_erasure(state: ServingState, user: int) -> Plan:
    """Compute all changes without applying them."""
    places = state.index.of_user(user)
    items, which = np.unique(state.index.items[places], return_inverse=True)
    taken = np.zeros(len(items), dtype=np.int64)
    np.add.at(taken, which, state.index.events_at(places))
    left = state.index.item_events[items] - taken
    newest = partial(state.index.newest_others, items, user)
    order = state.index.items[places]
    change, change_model = _without(state, user, ErasureContext(items, taken, left, order, newest))
    gone = items[left == 0]
    blocks, parts = state.index.without(user)

    def apply() -> None:
        with state.lock.write():
            change_model()
            state.forget(user, gone.tolist())

    erasure = Erasure(int(taken.sum()), len(items) - len(gone), len(gone), cleaned=True)
    return Plan(Removal(user, gone, blocks, parts, change), erasure, apply)


def _without(state: ServingState, user: int, context: ErasureContext) -> tuple[RowChange, Callable[[], None]]:
    """The rows of the state that change, and a function that changes the model."""
    model = state.recommender
    if isinstance(model, Forgetting):
        change = model.forget(user, context)
        return change, partial(model.apply_change, change)
    rebuilt = state.rebuilt(without=user)
    tables = {name: tensor.numpy() for name, tensor in rebuilt.state().items()}
    return all_rows(tables) if isinstance(model, Servable) else {}, partial(_replace, state, rebuilt)


def _replace(state: ServingState, recommender: Recommender) -> None:
    state.recommender, state.scorer = recommender, ItemScoreCache(recommender)
