"""FELRec-S: FELRec for logs of ordinary size. Cached vectors, and counts that say what vectors cannot.

A score is the sum of three parts: how popular the item is (a network on its decayed counts), how well it matches the
user (the cosine of FELRec, trusted as far as the item has events), and what speaks for just this pair (a network on
the evidence). Training is by the softmax over the whole catalogue, of what would have been served just before each
event.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from felrec.config import FELRecSSettings, TrainingSettings
from felrec.data.batches import InTime, TimeBatch
from felrec.data.events import Events, RowChange, Rows
from felrec.data.pending import Pending
from felrec.data.tables.histories import Histories
from felrec.model.counts import Counts
from felrec.model.domain import FEATURES as LOG_FEATURES
from felrec.model.evidence import FEATURES as PAIR_FEATURES
from felrec.model.evidence import come_true, gather
from felrec.model.kernels.sequences import Sequences, encode
from felrec.model.mlp_ensemble import MLPEnsemble
from felrec.model.offer import FEATURES as ITEM_FEATURES
from felrec.model.offer import Offer
from felrec.model.paper.cache import Cache, as_array, products
from felrec.model.paper.encoder import ITEM_SEQUENCE, USER_SEQUENCE
from felrec.model.rates import KINDS
from felrec.model.signals.pooled_encoder import PooledEncoder
from felrec.model.signals.seeds import SeededCache, seeds
from felrec.recommender import EVERYTHING, ErasureContext, Queries, Tensors, state_of

_CELLS = 1 << 24  # scores that a loss may hold: with a large catalogue fewer events of a batch are learned from
_RECENT_USERS = 2048  # whom the user of an item is told from
_ENOUGH_ITEMS = 2  # below, there is nothing to choose from
_SOFT = 1e-3  # added to the squared length of a vector: a short one points nowhere in particular


class FELRecS(nn.Module):
    """The default model. Its parameters do not depend on the number of users and items."""

    represents = EVERYTHING

    def __init__(
        self, settings: FELRecSSettings | None = None, seed: int = 0, device: torch.device | str = "cpu"
    ) -> None:
        super().__init__()
        self.settings = s = settings or FELRecSSettings()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.encoder = PooledEncoder(s.width, s.layers, s.heads, s.feed_forward, s.history_length)
            self.popularity = MLPEnsemble(s.members, ITEM_FEATURES + LOG_FEATURES, s.hidden)
            of_pair = PAIR_FEATURES + (KINDS if s.rates else 0) + 3
            self.evidence = MLPEnsemble(s.members, of_pair + LOG_FEATURES, s.hidden, s.hidden)
        self.trend = nn.Parameter(torch.full((ITEM_FEATURES - 1,), 0.15))  # popularity counts before it is learned
        self.log_scale = nn.Parameter(torch.tensor(0.0))  # of the cosine
        self.seed_share = nn.Parameter(torch.tensor(1.0))  # how much of its seed an item keeps
        self.confidence = nn.Parameter(torch.tensor([2.0, 0.0]))
        self.device = torch.device(device)
        self.to(self.device)
        blank = SeededCache if s.seeded else _Unseeded
        self.user_cache, self.item_cache = blank(s.width, 0, self.device), blank(s.width, 1, self.device)
        self.counts = Counts(s)
        self._recent_users = np.zeros(0, dtype=np.int32)
        self._offer: Offer | None = None

    # Scoring and observing

    def score(self, queries: Queries, candidates: Rows) -> Tensor:
        """Scores (B, C) of each user, encoded freshly from their exact history; -inf for an item never observed."""
        with torch.no_grad():
            offer = self._offered(candidates)
            (scores,) = self._scores(queries, offer)
            unseen = torch.from_numpy(offer.among.events == 0).to(self.device)
            return scores.masked_fill_(unseen, -torch.inf)

    def observe(self, block: Events) -> None:
        """Take a block in: counts and histories, then the vectors of each touched user and item."""
        self.apply_change(self.change(block))

    def change(self, block: Events) -> RowChange:
        """The rows of all whom the block touches, as they will be."""
        users, items_taken = Pending.of_owners(block.users, block.items)
        items, users_there = Pending.of_owners(block.items, block.users)
        change = self.counts.change(block)
        if self.counts.rates:
            change |= come_true(block, self.counts)
        if self.settings.cosine:
            with torch.no_grad():
                of_users, of_items = encode(
                    self.encoder, (self._of_users(users, items_taken), self._of_items(items, users_there))
                )
                change["user_cache"] = users, as_array(_direction(of_users))
                change["item_cache"] = items, as_array(self._item_vectors(items, of_items))
        return change

    def apply_change(self, change: RowChange) -> None:
        """Write it."""
        if self.settings.cosine:
            self.user_cache.apply_change(*change["user_cache"])
            self.item_cache.apply_change(*change["item_cache"])
        self.counts.apply_change({k: v for k, v in change.items() if not k.endswith("_cache")})
        if self._offer is not None and self._offer.moment == self.counts.horizons.moment:
            with torch.no_grad():
                self._offer.renew(change["trend_mass"][0], self.counts, self.settings.adaptive, self._popularity)
        else:
            self._offer = None

    def forget(self, user: int, remains: ErasureContext) -> RowChange:
        """Nothing in place of the user; of their items, what is left without them."""
        users, items, length = np.array([user], dtype=np.int32), remains.items, self.settings.history_length
        change = self.counts.forget(user, remains)
        if self.settings.cosine:
            others = Histories(length).recent(items, remains.newest(length))
            with torch.no_grad():
                (encoded,) = encode(self.encoder, (Sequences(self.user_cache, *others, USER_SEQUENCE),))
                vectors = self._item_vectors(items, encoded)
            gone = torch.from_numpy(remains.left == 0)
            vectors[gone] = self.item_cache.unwritten(items)[gone]
            change["user_cache"] = users, as_array(self.user_cache.unwritten(users))
            change["item_cache"] = items, as_array(vectors)
        return change

    def observe_then_score(self, block: Events, candidates: Rows) -> Tensor:
        """The published order: the block is taken in before it is scored."""
        self.observe(block)
        return self.score(Queries(block.users, block.times, Pending.none(len(block))), candidates)

    def user_vectors(self, rows: Rows) -> Tensor:
        """Cached vectors (B, D) of users, unit length."""
        return F.normalize(self.user_cache.read(rows), dim=1)

    def item_vectors(self, rows: Rows) -> Tensor:
        """Cached vectors (B, D) of items, unit length."""
        return F.normalize(self.item_cache.read(rows), dim=1)

    # Training

    def twin(self) -> FELRecS:
        """Another one with the same weights, not copies of them, that has seen no event."""
        other = FELRecS(self.settings, device=self.device)
        other._modules, other._parameters = self._modules, self._parameters
        return other

    def batches(self, events: Events, settings: TrainingSettings, epoch: int) -> InTime:
        """Time order, never shuffled."""
        return InTime(events, settings.batch_size, settings.trained_share, (settings.seed, epoch))

    def begin_epoch(self) -> None:
        """Every epoch begins with nothing known."""
        self.reset()

    def loss(self, step: TimeBatch) -> Tensor:
        """Softmax of what would have been served just before each event, then take the batch in."""
        block = step.events
        chosen = np.arange(len(block)) if step.trained is None else np.flatnonzero(step.trained)
        every = np.arange(self.counts.items.owners, dtype=np.int32)
        catalogue = every[self.counts.items.counts(every) > 0]
        known = np.flatnonzero(np.isin(block.items[chosen], catalogue))
        chosen = chosen[known][: max(2, _CELLS // max(1, len(catalogue) * self.settings.members))]
        loss = self._nothing()
        if len(chosen) and len(catalogue) >= _ENOUGH_ITEMS:
            asked = Queries.before_each(block)[chosen]
            targets = torch.from_numpy(np.searchsorted(catalogue, block.items[chosen])).to(self.device)
            scores = self._scores(asked, self._offered(catalogue))
            loss = loss + torch.stack([F.cross_entropy(of_one, targets) for of_one in scores]).mean()
            if self.settings.item_loss and self.settings.cosine:
                loss = loss + self.settings.item_loss * self._item_loss(block, chosen)
        self.observe(block)
        self._recent_users = np.concatenate([self._recent_users, block.users])[-_RECENT_USERS:]
        return loss

    def _item_loss(self, block: Events, chosen: np.typing.NDArray[np.int64]) -> Tensor:
        """The other side: tell the user of an event from recent ones, by the item as it was before."""
        before = Pending.within_block(block.items, block.users)[chosen]
        items = block.items[chosen]
        (encoded,) = encode(self.encoder, (self._of_items(items, before),))
        someone = np.unique(np.concatenate([self._recent_users, block.users]))
        users = _kept(self.user_cache.read(someone))
        scores = self.log_scale.exp() * self._item_vectors(items, encoded) @ users.T
        targets = torch.from_numpy(np.searchsorted(someone, block.users[chosen])).to(self.device)
        return F.cross_entropy(scores, targets)

    def _nothing(self) -> Tensor:
        """A zero that gradients can be taken of, where a batch has nothing to learn from."""
        return torch.stack([parameter.sum() * 0 for parameter in self.parameters()]).sum()

    def memory(self) -> Tensors:
        """Who was there lately."""
        return {"recent_users": torch.from_numpy(self._recent_users)}

    def load_memory(self, memory: Tensors) -> None:
        """Put back what `memory` returned."""
        self._recent_users = memory["recent_users"].numpy()

    # State and weights

    def reset(self) -> None:
        """Forget all events."""
        for cache in (self.user_cache, self.item_cache):
            cache.clear()
        self.counts.clear()
        self._recent_users = np.zeros(0, dtype=np.int32)
        self._offer = None

    def state(self) -> Tensors:
        """Vectors, histories and counts."""
        state = state_of(self.counts)
        if self.settings.cosine:
            state |= {"user_cache": self.user_cache.snapshot(), "item_cache": self.item_cache.snapshot()}
        return state

    def load_state(self, state: Tensors) -> None:
        """Put back what `state` returned."""
        if self.settings.cosine:
            self.user_cache.restore(state["user_cache"])
            self.item_cache.restore(state["item_cache"])
        self.counts.load_state({key: table.numpy() for key, table in state.items() if not key.endswith("_cache")})
        self._offer = None

    def weights(self) -> Tensors:
        """Encoder and networks."""
        return {name: tensor.detach().cpu().clone() for name, tensor in self.state_dict().items()}

    def load_weights(self, weights: Tensors) -> None:
        """Put back what `weights` returned."""
        self.load_state_dict(weights)
        self._offer = None

    def parameter_count(self) -> int:
        """Independent of the number of users and items."""
        return sum(parameter.numel() for parameter in self.parameters())

    # The parts of a score

    def _scores(self, queries: Queries, offer: Offer) -> list[Tensor]:
        """Scores (B, C): of each member where they learn, else of all together."""
        items, popularity = offer.features.to(self.device), offer.popularity.to(self.device)
        match = self._match(queries, offer.among.candidates, items[:, 0])
        found = gather(queries, self.counts, offer.among)
        query, column = torch.from_numpy(found.query), torch.from_numpy(found.column)
        told = [torch.from_numpy(found.features).to(self.device)]
        if self.counts.rates:
            told.append(torch.from_numpy(self.counts.rates.features(found.cells())).to(self.device))
        expected = popularity.detach().mean(dim=1)[column]
        beside = torch.stack([items[column, 0], expected, match.detach()[query, column]], dim=1)
        gained = self.evidence(_beside(torch.cat([*told, beside], dim=1), self._domain()))
        if not torch.is_grad_enabled():
            gained = gained.mean(dim=1, keepdim=True)
        totals = [match + for_all for for_all in popularity.unbind(dim=1)]
        return [
            total.index_put_((query, column), for_some.to(total.dtype), accumulate=True)
            for total, for_some in zip(totals, gained.unbind(dim=1), strict=True)
        ]

    def _offered(self, candidates: Rows) -> Offer:
        learning, kept = torch.is_grad_enabled(), self._offer
        if not learning and kept is not None and np.array_equal(kept.among.candidates, candidates):
            return kept
        offer = Offer.of(candidates, self.counts, self.settings.adaptive, self._popularity)
        if not learning and len(candidates) >= self.counts.items.owners:  # of some only, it would hardly be asked again
            self._offer = offer
        return offer

    def _popularity(self, items: Tensor) -> Tensor:
        """How much speaks for items (C, members or 1) whoever asks, by their features."""
        items = items.to(self.device)
        learned: Tensor = self.popularity(items, of_all=self._domain()) + (items[:, :-1] @ self.trend)[:, None]
        return learned if torch.is_grad_enabled() else learned.mean(dim=1, keepdim=True)

    def _match(self, queries: Queries, candidates: Rows, log_events: Tensor) -> Tensor:
        """The scaled cosine (B, C), as far as each item is trusted."""
        if not self.settings.cosine:
            return torch.zeros(len(queries), len(candidates), device=self.device)
        (encoded,) = encode(self.encoder, (self._of_users(queries.users, queries.pending),))
        users = self.log_scale.exp() * _direction(encoded)
        match = products(users, _kept(self.item_cache.read(candidates)))
        if self.settings.gate:
            match = match * torch.sigmoid(self.confidence[0] + self.confidence[1] * log_events)
        return match

    def _domain(self) -> Tensor:
        features = self.counts.domain.features if self.settings.domain else np.zeros(LOG_FEATURES, dtype=np.float32)
        return torch.from_numpy(features).to(self.device)

    def _of_users(self, users: Rows, pending: Pending | None = None) -> Sequences:
        return Sequences(self.item_cache, *self.counts.users.recent(users, pending), ITEM_SEQUENCE)

    def _of_items(self, items: Rows, pending: Pending | None = None) -> Sequences:
        return Sequences(self.user_cache, *self.counts.items.recent(items, pending), USER_SEQUENCE)

    def _item_vectors(self, items: Rows, encoded: Tensor) -> Tensor:
        if self.settings.seeded:
            encoded = encoded + self.seed_share * seeds(items, self.settings.width, 1).to(self.device)
        return _direction(encoded)


class _Unseeded(Cache):
    """The paper's cache, made as a seeded one is: the ablation."""

    def __init__(self, width: int, side: int, device: torch.device | str) -> None:
        super().__init__(width, device)


def _beside(features: Tensor, domain: Tensor) -> Tensor:
    """Features (M, F) with those of the log beside each."""
    return torch.cat([features, domain.expand(len(features), -1)], dim=1)


def _kept(vectors: Tensor) -> Tensor:
    """Vectors of a cache, which is written before gradients are taken."""
    return vectors.clone() if torch.is_grad_enabled() else vectors


def _direction(vectors: Tensor) -> Tensor:
    """Vectors of about unit length; smooth where they vanish."""
    return vectors * torch.rsqrt(vectors.square().sum(dim=1, keepdim=True) + _SOFT)
