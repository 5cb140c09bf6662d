"""Erasing a user: what has to change on disk and in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from felrec.data.events import RowChange
from felrec.recommender import Forgetting, Recommender, Remains, Servable, as_arrays
from felrec.service.identity import whole
from felrec.service.records import Erasure
from felrec.service.replica import Replica
from felrec.store.protocol import Removal


@dataclass(frozen=True)
class Plan:
    """An erasure that is worked out and not begun."""

    removal: Removal
    erasure: Erasure
    accept: Callable[[], None]  # changes memory, once the removal is on disk


def plan_erasure(replica: Replica, user: int) -> Plan:
    """Work out everything; reads only."""
    places = replica.ledger.of_user(user)
    items, which = np.unique(replica.ledger.items[places], return_inverse=True)
    taken = np.zeros(len(items), dtype=np.int64)
    np.add.at(taken, which, replica.ledger.events_at(places))
    left = replica.ledger.item_events[items] - taken
    newest = partial(replica.ledger.newest_others, items, user)
    order = replica.ledger.items[places]
    state, change_model = _without(replica, user, Remains(items, taken, left, order, newest))
    gone = items[left == 0]
    blocks, parts = replica.ledger.without(user)

    def accept() -> None:
        with replica.lock.write():
            change_model()
            replica.forget(user, gone.tolist())

    erasure = Erasure(int(taken.sum()), len(items) - len(gone), len(gone))
    return Plan(Removal(user, gone, blocks, parts, state), erasure, accept)


def _without(replica: Replica, user: int, remains: Remains) -> tuple[RowChange, Callable[[], None]]:
    """The rows of the state that change, and what changes the model."""
    model = replica.recommender
    if isinstance(model, Forgetting):
        change = model.forget(user, remains)
        return as_arrays(change), partial(model.accept, change)
    rebuilt = replica.rebuilt(without=user)
    state = {name: tensor.numpy() for name, tensor in rebuilt.state().items()}
    return whole(state) if isinstance(model, Servable) else {}, partial(_replace, replica, rebuilt)


def _replace(replica: Replica, recommender: Recommender) -> None:
    replica.recommender = recommender
