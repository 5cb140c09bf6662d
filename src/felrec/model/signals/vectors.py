"""Vectors: the cached vectors of FELRec, and the cosine of a user and an item as far as the item is trusted."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from felrec.abilities import ErasureContext
from felrec.data.events import Events, RowChange, Rows
from felrec.data.pending import Pending
from felrec.data.tables.histories import Histories
from felrec.data.tables.table import TableState
from felrec.model.kernels.catalogue import dot_products
from felrec.model.kernels.native.encoding import encode_compiled
from felrec.model.kernels.sequences import Sequences, encode
from felrec.model.paper.cache import as_array
from felrec.model.paper.encoder import ITEM_SEQUENCE, USER_SEQUENCE
from felrec.model.signals.pooled_encoder import PooledEncoder
from felrec.model.signals.recent import BlockView, RecentEvents
from felrec.model.signals.seeds import SeededCache, seeds
from felrec.model.signals.signal import Ints, one_row
from felrec.peers import Peers
from felrec.recommender import Queries

_USERS, _ITEMS = "user_cache", "item_cache"
SOFT = 1e-3  # added to the squared length of a vector: a short one points nowhere in particular


class VectorNetwork(nn.Module):
    """All weights of the signal: the encoder, and how far its cosine counts."""

    def __init__(self, width: int, layers: int, heads: int, feed_forward: int, history_length: int) -> None:
        super().__init__()
        self.encoder = PooledEncoder(width, layers, heads, feed_forward, history_length)
        self.log_scale = nn.Parameter(torch.tensor(0.0))  # of the cosine
        self.seed_share = nn.Parameter(torch.tensor(1.0))  # how much of its seed an item keeps
        self.confidence = nn.Parameter(torch.tensor([2.0, 0.0]))

    def trust(self, log_events: Tensor) -> Tensor:
        """How far to trust the cosine of items with so many events (C,): with few of them it is mostly noise."""
        return torch.sigmoid(self.confidence[0] + self.confidence[1] * log_events)

    def log_trust(self, log_events: Tensor) -> Tensor:
        """The logarithm of `trust`."""
        return F.logsigmoid(self.confidence[0] + self.confidence[1] * log_events)


class Vectors:
    """Caches of users and items, which read as fixed random vectors until they are written."""

    names: tuple[str, ...] = ()  # it is dense: read by `match`

    def __init__(self, network: VectorNetwork, width: int, recent: RecentEvents, device: torch.device) -> None:
        self.network, self.width, self._recent, self._device = network, width, recent, device
        self.users, self.items = SeededCache(width, 0, device), SeededCache(width, 1, device)

    def match(self, queries: Queries, candidates: Rows, log_events: Tensor, *, learning: bool = False) -> Tensor:
        """The scaled cosine (B, C) of each user, encoded from their exact history, and the cached items."""
        users, items = self.scaled_users(queries), self.items.read(candidates)
        if learning:  # the cache is written before gradients are taken
            return users @ items.clone().T * self.network.trust(log_events)
        return dot_products(users, items) * self.network.trust(log_events)

    def scaled_users(self, queries: Queries, compiled_by: Peers | None = None) -> Tensor:
        """The directions (B, D) of users, encoded from their exact history, times the scale of the cosine."""
        encoded = self._encoded(self._of_users(queries.users, queries.pending), compiled_by)
        return self.network.log_scale.exp() * _direction(encoded)

    def user_loss(self, events: Events, chosen: Ints, recent_users: Rows, compiled_by: Peers | None = None) -> Tensor:
        """Auxiliary loss: classify the user of each chosen event among recent users, by the item as it was before."""
        before = Pending.within_block(events.items, events.users)[chosen]
        items = events.items[chosen]
        vectors = self._item_vectors(items, self._encoded(self._of_items(items, before), compiled_by))
        users = np.unique(np.concatenate([recent_users, events.users]))
        scores = self.network.log_scale.exp() * vectors @ self.users.read(users).clone().T
        targets = torch.from_numpy(np.searchsorted(users, events.users[chosen])).to(self._device)
        return F.cross_entropy(scores, targets)

    def change(self, block: BlockView) -> RowChange:
        """The vectors of all users and items that a block touches, both from the caches as they are."""
        with torch.no_grad():
            users, items = encode(
                self.network.encoder,
                (self._of_users(block.users, block.items_taken), self._of_items(block.items, block.users_there)),
            )
            return {
                _USERS: (block.users, as_array(_direction(users))),
                _ITEMS: (block.items, as_array(self._item_vectors(block.items, items))),
            }

    def apply_change(self, change: RowChange) -> None:
        """Copy the vectors of a change."""
        self.users.apply_change(*change[_USERS])
        self.items.apply_change(*change[_ITEMS])

    def forget(self, user: int, context: ErasureContext) -> RowChange:
        """The user's seed; their items encoded from the users that are left."""
        length, items = self._recent.length, context.items
        left = Histories(length).recent(items, context.newest(length))
        with torch.no_grad():
            encoded = self._encoded(Sequences(self.users, *left, USER_SEQUENCE))
            vectors = as_array(self._item_vectors(items, encoded))
        unwritten = as_array(self.items.unwritten(items))
        vectors = np.where((context.left == 0)[:, None], unwritten, vectors)
        return {_USERS: (one_row(user), as_array(self.users.unwritten(one_row(user)))), _ITEMS: (items, vectors)}

    def clear(self) -> None:
        """Forget all events."""
        self.users.clear()
        self.items.clear()

    def view(self) -> TableState:
        """Both caches, without a copy on a CPU."""
        return {_USERS: self.users.vectors.cpu().numpy(), _ITEMS: self.items.vectors.cpu().numpy()}

    def state(self) -> TableState:
        """A copy of both caches."""
        return {_USERS: self.users.snapshot().numpy(), _ITEMS: self.items.snapshot().numpy()}

    def load_state(self, state: TableState) -> None:
        """Restore what `state` returned."""
        for cache, name in ((self.users, _USERS), (self.items, _ITEMS)):
            cache.restore(torch.from_numpy(np.asarray(state[name])))

    def _encoded(self, sequences: Sequences, compiled_by: Peers | None = None) -> Tensor:
        """Vectors (B, D) by torch, or by the compiled kernels of processes that divide the work among them."""
        if compiled_by:
            return encode_compiled(self.network.encoder, sequences, compiled_by)
        (encoded,) = encode(self.network.encoder, (sequences,))
        return encoded

    def _of_users(self, users: Rows, pending: Pending) -> Sequences:
        return Sequences(self.items, *self._recent.users.recent(users, pending), ITEM_SEQUENCE)

    def _of_items(self, items: Rows, pending: Pending) -> Sequences:
        return Sequences(self.users, *self._recent.items.recent(items, pending), USER_SEQUENCE)

    def _item_vectors(self, items: Rows, encoded: Tensor) -> Tensor:
        seed = seeds(items, self.width, self.items.side).to(self._device)
        return _direction(encoded + self.network.seed_share * seed)


def _direction(vectors: Tensor) -> Tensor:
    """Vectors of about unit length; smooth where they vanish."""
    return vectors * torch.rsqrt(vectors.square().sum(dim=1, keepdim=True) + SOFT)
