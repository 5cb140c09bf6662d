"""FELRec: caches and histories of users and items, refined by one encoder, trained by one objective."""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from felrec.config import FELRecSettings, TrainingSettings
from felrec.data.batches import InTime, TimeBatch
from felrec.data.events import Events, RowChange, Rows, prefixed, without_prefix
from felrec.data.pending import Pending
from felrec.data.tables.histories import Histories
from felrec.model.kernels.dropout import Masks
from felrec.model.kernels.inference import inference
from felrec.model.kernels.sequences import Sequences, encode
from felrec.model.paper.cache import Cache, as_array, last_occurrence, products
from felrec.model.paper.encoder import ITEM_SEQUENCE, USER_SEQUENCE, Encoder, initialise
from felrec.model.paper.objectives import Contrast, Predict
from felrec.recommender import EVERYTHING, ErasureContext, Queries, Tensors, state_of


class FELRec(nn.Module):
    """The paper's recommender, FELRec-Q with `variant="q"` and FELRec-P with `variant="p"`."""

    represents = EVERYTHING
    objective: Contrast | Predict

    def __init__(
        self,
        settings: FELRecSettings | None = None,
        variant: Literal["q", "p"] = "q",
        seed: int = 0,
        device: torch.device | str = "cpu",
    ) -> None:
        super().__init__()
        self.settings = s = settings or FELRecSettings()
        generator = torch.Generator().manual_seed(seed)
        with torch.random.fork_rng(devices=[]):  # layers first draw from the global generator: leave it as it was
            self.encoder = Encoder(s.width, s.layers, s.heads, s.feed_forward, s.history_length, s.type_embedding)
            heads = (s.normalisation, s.projection == "mlp", s.share_projections)
            if variant == "q":
                self.objective = Contrast(s.width, s.queue_size, s.temperature, *heads, generator)
            else:
                self.objective = Predict(s.width, *heads)
        initialise(self, generator)
        self.device = torch.device(device)
        self.to(self.device)
        if isinstance(self.objective, Contrast):
            self.objective.user_queue.to(device)
            self.objective.item_queue.to(device)
        self.masks = Masks(s.dropout, torch.Generator(self.device).manual_seed(seed + 1))
        self.user_cache, self.item_cache = Cache(s.width, self.device), Cache(s.width, self.device)
        self.user_histories, self.item_histories = Histories(s.history_length), Histories(s.history_length)

    # Scoring and observing

    def score(self, queries: Queries, candidates: Rows) -> Tensor:
        """Cosine (B, C) of each user, encoded freshly from their exact history, and the cached items."""
        with inference(self):
            (users,) = self._encode(self._of_users(queries.users, queries.pending))
            return self._match(users, candidates, queries.users)

    def observe(self, block: Events) -> None:
        """Append to the histories, then encode each touched user and item once, from the caches as they were."""
        self.apply_change(self.change(block))

    def change(self, block: Events) -> RowChange:
        """The vectors and histories of all whom the block touches, as they will be."""
        users, items_taken = Pending.of_owners(block.users, block.items)
        items, users_there = Pending.of_owners(block.items, block.users)
        with inference(self):
            user_vectors, item_vectors = self._encode(
                self._of_users(users, items_taken), self._of_items(items, users_there)
            )
        change: RowChange = {
            "user_cache": (users, as_array(user_vectors)),
            "item_cache": (items, as_array(item_vectors)),
        }
        for side, rows, histories, pending in (
            ("user", users, self.user_histories, items_taken),
            ("item", items, self.item_histories, users_there),
        ):
            change |= prefixed(f"{side}_", histories.change(rows, pending))
        return change

    def apply_change(self, change: RowChange) -> None:
        """Write vectors and histories."""
        self.user_cache.apply_change(*change["user_cache"])
        self.item_cache.apply_change(*change["item_cache"])
        for side, histories in (("user", self.user_histories), ("item", self.item_histories)):
            histories.apply_change(without_prefix(f"{side}_", change))

    def forget(self, user: int, remains: ErasureContext) -> RowChange:
        """The items that the user had, encoded from who else took them, and nothing in place of the user."""
        users, items = np.array([user], dtype=np.int32), remains.items
        newest = remains.newest(self.settings.history_length)
        histories = self.item_histories.rewrite(items, newest, remains.left)
        others = Histories(self.settings.history_length).recent(items, newest)
        with inference(self):
            (vectors,) = self._encode(Sequences(self.user_cache, *others, USER_SEQUENCE))
        vectors[torch.from_numpy(remains.left == 0)] = 0
        nothing = self.user_histories.rewrite(users, Pending.none(1), np.zeros(1, dtype=np.int64))
        return {
            "user_cache": (users, np.zeros((1, self.settings.width), np.float32)),
            "item_cache": (items, as_array(vectors)),
            **prefixed("user_", nothing),
            **prefixed("item_", histories),
        }

    def observe_then_score(self, block: Events, candidates: Rows) -> Tensor:
        """As published: the vectors before each event are written, the last of a batch wins, then it is scored."""
        last_user, last_item = last_occurrence(block.users), last_occurrence(block.items)
        items_before = Pending.within_block(block.users, block.items)[last_user]
        users_before = Pending.within_block(block.items, block.users)[last_item]
        with inference(self):
            user_vectors, item_vectors = self._encode(
                self._of_users(block.users[last_user], items_before),
                self._of_items(block.items[last_item], users_before),
            )
            self.user_cache.write(block.users[last_user], user_vectors)
            self.item_cache.write(block.items[last_item], item_vectors)
            self._append(block)
            return self._match(self.user_cache.read(block.users), candidates, block.users)

    def user_vectors(self, rows: Rows) -> Tensor:
        """Cached vectors (B, D) of users, unit length or zero."""
        return self.user_cache.read(rows) / self.user_cache.lengths(rows).clamp(min=1e-12)[:, None]

    def item_vectors(self, rows: Rows) -> Tensor:
        """Cached vectors (B, D) of items, unit length or zero."""
        return self.item_cache.read(rows) / self.item_cache.lengths(rows).clamp(min=1e-12)[:, None]

    # Training

    def batches(self, events: Events, settings: TrainingSettings, epoch: int) -> InTime:
        """Time order, never shuffled."""
        return InTime(events, settings.batch_size, settings.trained_share, (settings.seed, epoch))

    def begin_epoch(self) -> None:
        """The cache is emptied at the start of each epoch; the queues stay."""
        self.reset()

    def loss(self, step: TimeBatch) -> Tensor:
        """Encode both sides of each event from what was before it, write that into the caches, compare.

        Of events that are not trained on only what survives in a cache is encoded, and without gradients.
        """
        batch, trained = step.events, step.trained
        self.masks.refresh()
        items_before = Pending.within_block(batch.users, batch.items)
        users_before = Pending.within_block(batch.items, batch.users)
        chosen = np.arange(len(batch)) if trained is None else np.flatnonzero(trained)
        users, items = self._encode(
            self._of_users(batch.users[chosen], items_before[chosen]),
            self._of_items(batch.items[chosen], users_before[chosen]),
        )
        user_rest = np.setdiff1d(last_occurrence(batch.users), chosen)
        item_rest = np.setdiff1d(last_occurrence(batch.items), chosen)
        with torch.no_grad():
            rest_of_users, rest_of_items = self._encode(
                self._of_users(batch.users[user_rest], items_before[user_rest]),
                self._of_items(batch.items[item_rest], users_before[item_rest]),
            )
        for at, vectors in ((chosen, users), (user_rest, rest_of_users)):  # the rest last: it holds the later events
            self.user_cache.write(batch.users[at], vectors)
        for at, vectors in ((chosen, items), (item_rest, rest_of_items)):
            self.item_cache.write(batch.items[at], vectors)
        self._append(batch)
        loss: Tensor = self.objective(users, items)
        return loss

    def memory(self) -> Tensors:
        """The queues and the state of the dropout generator."""
        memory = {"generator": self.masks.generator.get_state(), "mask_pool": torch.tensor(self.masks.size)}
        if isinstance(self.objective, Contrast):
            for side, queue in (("user", self.objective.user_queue), ("item", self.objective.item_queue)):
                memory[f"{side}_queue"] = queue.keys.cpu().clone()
                memory[f"{side}_queue_next"] = torch.tensor(queue.next)
        return memory

    def load_memory(self, memory: Tensors) -> None:
        """Put back what `memory` returned."""
        self.masks.generator.set_state(memory["generator"])
        self.masks.size = int(memory["mask_pool"])
        if isinstance(self.objective, Contrast):
            for side, queue in (("user", self.objective.user_queue), ("item", self.objective.item_queue)):
                queue.keys = memory[f"{side}_queue"].to(self.device)
                queue.next = int(memory[f"{side}_queue_next"])

    # State and weights

    def reset(self) -> None:
        """Empty the caches and the histories."""
        for part in (self.user_cache, self.item_cache, self.user_histories, self.item_histories):
            part.clear()

    def state(self) -> Tensors:
        """Vectors and histories of both sides."""
        state = {"user_cache": self.user_cache.snapshot(), "item_cache": self.item_cache.snapshot()}
        for side, histories in (("user", self.user_histories), ("item", self.item_histories)):
            state |= state_of(histories, f"{side}_")
        return state

    def load_state(self, state: Tensors) -> None:
        """Put back what `state` returned."""
        self.user_cache.restore(state["user_cache"])
        self.item_cache.restore(state["item_cache"])
        for side, histories in (("user", self.user_histories), ("item", self.item_histories)):
            histories.load_state({name: state[f"{side}_{name}"].numpy() for name in ("ring", "count")})

    def weights(self) -> Tensors:
        """Encoder, type vectors and heads."""
        return {name: tensor.detach().cpu().clone() for name, tensor in self.state_dict().items()}

    def load_weights(self, weights: Tensors) -> None:
        """Put back what `weights` returned."""
        self.load_state_dict(weights)

    def parameter_count(self) -> int:
        """Independent of the number of users and items."""
        return sum(parameter.numel() for parameter in self.parameters())

    # The one place that encodes and the one that compares

    def _of_users(self, users: Rows, pending: Pending | None = None) -> Sequences:
        return Sequences(self.item_cache, *self.user_histories.recent(users, pending), ITEM_SEQUENCE)

    def _of_items(self, items: Rows, pending: Pending | None = None) -> Sequences:
        return Sequences(self.user_cache, *self.item_histories.recent(items, pending), USER_SEQUENCE)

    def _encode(self, *sides: Sequences) -> tuple[Tensor, ...]:
        """Vectors (B, D) of each side's histories."""
        dropout = self.masks if self.training and self.settings.dropout else None
        if dropout is not None:
            dropout.reserve(max(side.largest_chunk for side in sides) * self.settings.feed_forward)
        return encode(self.encoder, sides, dropout)

    def _match(self, users: Tensor, candidates: Rows, rows: Rows) -> Tensor:
        """Scores (B, C) of user vectors (B, D) and cached items; -inf for an item never observed."""
        items, lengths = self.item_cache.read(candidates), self.item_cache.lengths(candidates)
        unseen = lengths == 0
        if self.settings.score_from == "projections":
            users, items = self.objective.project_users(users), self.objective.project_items(items)
            lengths = items.norm(dim=1)
        users = F.normalize(users, dim=1)
        if self.settings.neighbours:
            users = self._neighbourhood(users, rows)
        scores = products(users, items).div_(lengths.clamp(min=1e-12))
        return scores.masked_fill_(unseen, -torch.inf) if bool(unseen.any()) else scores

    def _neighbourhood(self, users: Tensor, rows: Rows) -> Tensor:
        """The mean (B, D) of the nearest other users' unit vectors: averaging scores is averaging vectors."""
        everyone = self.user_cache.read(np.arange(len(self.user_cache)))
        known = everyone.any(dim=1)
        if self.settings.score_from == "projections":
            everyone = self.objective.project_users(everyone)
        everyone = F.normalize(everyone, dim=1)
        similarity = (users @ everyone.T).masked_fill_(~known, -torch.inf)
        own = torch.from_numpy(np.flatnonzero(rows < len(everyone)))
        similarity[own, torch.from_numpy(rows[own.numpy()].astype(np.int64))] = -torch.inf
        count = min(self.settings.neighbours, int(known.sum()) - 1)  # without the user who asks
        if count < 1:
            return users
        return everyone[similarity.topk(count, dim=1).indices].mean(dim=1)

    def _append(self, block: Events) -> None:
        self.user_histories.append(block.users, block.items)
        self.item_histories.append(block.items, block.users)
