"""Vectors made of counts: items by what is taken with them, users by their items.

They have no weights and no state: they are computed from the links of the signal `together` when they are asked for.
Every item has a fixed random direction. The vector of an item is the sum of the directions of the items that it is
linked to, by their similarity (random indexing). So items are alike if the same items are taken with them, even if no
user had both. The vector of a user is the mean of those of their newest items.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from felrec.data.events import Rows
from felrec.data.pending import Pending
from felrec.data.tables.histories import EMPTY
from felrec.model.signals.recent import RecentEvents
from felrec.model.signals.seeds import seeds
from felrec.model.signals.signal import one_row
from felrec.model.signals.together import Together

WIDTH = 256  # two unrelated vectors have a cosine of about 1 / sqrt(WIDTH) = .06
DIRECTIONS = 16_384  # a small table; of the items that an item is linked to, hardly two share a direction
CONSIDERED = 512  # users that may be near to an item or a user


class CountedVectors:
    """Unit vectors of users and items, and the users that may be near to one of them."""

    def __init__(self, together: Together, recent: RecentEvents) -> None:
        self._together, self._recent = together, recent

    def of_items(self, rows: Rows) -> Tensor:
        """Vectors (B, WIDTH) of items; that of an item without links is its direction."""
        others, similarity = self._together.similarities(rows)
        own = similarity.max(axis=1, keepdims=True, initial=0)  # counts as much as the most similar item
        others = np.concatenate([rows[:, None], others], axis=1)
        weights = np.concatenate([np.where(own > 0, own, 1), similarity], axis=1)
        at, of_each = torch.from_numpy(others % DIRECTIONS), torch.from_numpy(weights)
        return F.normalize(F.embedding_bag(at, _directions(), per_sample_weights=of_each, mode="sum"), dim=1)

    def of_users(self, rows: Rows) -> Tensor:
        """Vectors (B, WIDTH) of users; zero for one without a history."""
        history, mask = self._recent.users.recent(rows, Pending.none(len(rows)))
        items, place = np.unique(history, return_inverse=True)
        vectors = self.of_items(items)
        vectors[torch.from_numpy(items == EMPTY)] = 0
        return F.normalize(F.embedding_bag(torch.from_numpy(place.reshape(mask.shape)), vectors, mode="sum"), dim=1)

    def users_near_item(self, item: int) -> Rows:
        """Users who lately took the items that an item is linked to, at most `CONSIDERED`."""
        linked = self._together.similar(item)
        return self._users_of(linked.rows, linked.scores)

    def users_near_user(self, user: int) -> Rows:
        """Users who lately took the newest items of a user, at most `CONSIDERED`; rare items count more."""
        history, mask = self._recent.users.recent(one_row(user), Pending.none(1))
        items = np.unique(history[mask])
        users = self._users_of(items, 1 / np.sqrt(self._recent.items.counts(items)))
        others: Rows = users[users != user]
        return others

    def _users_of(self, items: Rows, weights: NDArray[np.floating]) -> Rows:
        """The newest users of items, those of the items with most weight in all."""
        users, mask = self._recent.items.recent(items, Pending.none(len(items)))
        distinct, place = np.unique(users[mask], return_inverse=True)
        summed = np.bincount(place, np.broadcast_to(weights[:, None], mask.shape)[mask], len(distinct))
        most: Rows = distinct[np.argsort(-summed, kind="stable")[:CONSIDERED]]
        return most


@cache
def _directions() -> Tensor:
    """Fixed random unit vectors (DIRECTIONS, WIDTH)."""
    return seeds(np.arange(DIRECTIONS), WIDTH, side=1)
