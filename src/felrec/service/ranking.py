"""Reading: the best items for somebody, and who or what is near. The caller holds the read lock."""

from __future__ import annotations

import time

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from felrec.data.events import Rows
from felrec.data.histories import Pending
from felrec.errors import InvalidRequest, NotFound
from felrec.recommender import Queries, Representing
from felrec.service.records import Side
from felrec.service.replica import Replica

Scores = NDArray[np.floating]
Best = list[tuple[int, float]]  # rows and scores, best first


def scores_of(replica: Replica, user: int, session: Rows, rows: Rows) -> Scores:
    """Scores (C,) of items for a user, or for somebody without a row who had a session; a copy."""
    who = user if user >= 0 else len(replica.users)  # the next free row: somebody without a history
    pending = Pending.of([session.tolist()]) if len(session) else Pending.none(1)
    times = np.array([max(replica.clock, time.time())])
    queries = Queries(np.array([who], dtype=np.int32), times, pending)
    return np.array(replica.recommender.score(queries, rows)[0].cpu().numpy())


def best_items(replica: Replica, user: int, session: Rows, k: int, *, leave_out: Rows, candidates: Rows | None) -> Best:
    """The best k items of the catalogue or of candidates (ascending), without those to leave out."""
    rows = np.arange(len(replica.items), dtype=np.int32) if candidates is None else candidates
    if len(rows) == 0:
        return []
    scores = scores_of(replica, user, session, rows)
    for out in (leave_out, replica.catalogue.out):
        if len(out):
            scores[out if candidates is None else np.isin(rows, out)] = -np.inf
    return best(scores, rows, k)


def best(scores: Scores, rows: Rows, k: int) -> Best:
    """The k highest scores, without what cannot be scored."""
    top = torch.topk(torch.from_numpy(scores), min(k, len(scores)))
    found = zip(rows[top.indices.numpy()].tolist(), top.values.tolist(), strict=True)
    return [(row, score) for row, score in found if score > -np.inf]


def representing(replica: Replica) -> Representing:
    """The model, if it has vectors."""
    if not isinstance(replica.recommender, Representing):
        raise InvalidRequest(f"{replica.model.name} has no vectors to compare; serve a felrec model")
    return replica.recommender


def vectors_of(replica: Replica, side: Side, rows: Rows) -> Tensor:
    """Unit vectors (B, D)."""
    model = representing(replica)
    return model.user_vectors(rows) if side == "user" else model.item_vectors(rows)


def nearest(replica: Replica, side: Side, vector: Tensor, k: int, leave_out: Rows) -> Best:
    """The users or items whose vectors (B, D) match a vector (D,) best."""
    directory = replica.users if side == "user" else replica.items
    events = replica.ledger.user_events if side == "user" else replica.ledger.item_events
    rows = np.arange(len(directory), dtype=np.int32)
    scores = (vectors_of(replica, side, rows) @ vector).cpu().numpy()
    scores[leave_out] = -np.inf
    scores[: len(events)][events == 0] = -np.inf  # erased
    return best(scores, rows, k)


def known_row(replica: Replica, side: Side, name: str) -> int:
    """The row of a user or an item with events; NotFound if there is none."""
    row = (replica.users if side == "user" else replica.items).row(name)
    if row < 0:
        raise NotFound(f"the {side} has no event yet, so there is nothing to say of it; post one first")
    return row


def rank_among(scores: Scores, at: int) -> int | None:
    """How many are better than the one at this place; None if it cannot be scored."""
    return int((scores > scores[at]).sum()) if scores[at] > -np.inf else None
