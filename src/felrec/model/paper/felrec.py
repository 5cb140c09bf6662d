"""FELRec: caches and histories of users and items, one encoder and one objective.

`reference.py` is a slow and readable version of the same computation.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from felrec.abilities import ErasureContext
from felrec.config import TrainingSettings
from felrec.data.batches import InTime, TimeBatch
from felrec.data.events import Events, RowChange, Rows
from felrec.data.pending import Pending
from felrec.data.tables.histories import Histories
from felrec.data.tables.table import TableState
from felrec.model.kernels.bfloat16 import ShortCopy
from felrec.model.kernels.catalogue import dot_products
from felrec.model.kernels.dropout import Masks
from felrec.model.kernels.inference import inference
from felrec.model.kernels.sequences import Sequences, encode
from felrec.model.paper.cache import last_occurrence
from felrec.model.paper.encoder import ITEM_SEQUENCE, USER_SEQUENCE, Encoder, initialise
from felrec.model.paper.neighbours import nearest_mean
from felrec.model.paper.objectives import Contrast, Predict
from felrec.model.paper.popularity_prior import PopularityPrior
from felrec.model.paper.queue import Queue
from felrec.model.paper.residual import ResidualEncoder, start_as_identity
from felrec.model.paper.served_score import Before, ServedLoss, ServedScore
from felrec.model.paper.settings import ORDINARY, FELRecSettings
from felrec.model.paper.side import Side
from felrec.model_kind import ModelKind
from felrec.peers import ALONE
from felrec.recommender import EVERYTHING, LearnedWeights, Queries, Tensors

__all__ = ["FELREC_P", "FELREC_Q", "FELRec", "FELRecSettings"]


class FELRec(LearnedWeights):
    """The paper's recommender, FELRec-Q with `variant="q"` and FELRec-P with `variant="p"`."""

    represents = EVERYTHING
    peers = ALONE  # each encodes a share of a batch; heads, batch statistics and queues see all of it on each
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
        with torch.random.fork_rng(devices=[]):  # layers draw from the global generator: restore it afterwards
            encoder = Encoder if s.encoder == "published" else ResidualEncoder
            self.encoder = encoder(s.width, s.layers, s.heads, s.feed_forward, s.history_length, s.type_embedding)
            heads = (s.normalisation, s.projection, s.share_projections)
            if variant == "q":
                self.objective = Contrast(s.width, s.queue_size, s.temperature, *heads, generator)
            else:
                self.objective = Predict(s.width, *heads)
        initialise(self, generator)
        start_as_identity(self)
        self._short_encoder = ShortCopy(self.encoder)
        self.device = torch.device(device)
        self.prior = PopularityPrior(s.prior_half_lives, self.device) if s.prior_half_lives else None
        served = self.prior is not None or s.negatives == "catalogue"
        self.served = ServedScore(s.temperature, self.prior) if served else None  # None: the cosine is the score
        self.to(self.device)
        self.masks = Masks(s.dropout, torch.Generator(self.device).manual_seed(seed + 1))
        self.users = Side("user_", ITEM_SEQUENCE, s, self.device)
        self.items = Side("item_", USER_SEQUENCE, s, self.device)

    # Scoring and observing

    def score(self, queries: Queries, candidates: Rows) -> Tensor:
        """Scores (B, C) of each user, newly encoded from the exact history, and the cached items."""
        with inference(self):
            (encoded,) = self._encode(self._of_users(queries.users, queries.pending))
            return self._match(self.users.finished(queries.users, encoded), candidates, queries.users)

    def observe(self, block: Events) -> None:
        """Append to the histories, then encode each touched user and item once, from the caches before the block."""
        self.apply_change(self.change(block))

    def change(self, block: Events) -> RowChange:
        """The new vectors and histories of the users and items of a block."""
        users, items_taken = Pending.of_owners(block.users, block.items)
        items, users_there = Pending.of_owners(block.items, block.users)
        with inference(self):
            encoded = self._encode(self._of_users(users, items_taken), self._of_items(items, users_there))
            user_vectors, item_vectors = self._finished(users, items, encoded)
        return {
            **self.users.change(users, user_vectors, self.users.histories.change(users, items_taken)),
            **self.items.change(items, item_vectors, self.items.histories.change(items, users_there)),
            **(self.prior.change(block.items) if self.prior else {}),
        }

    def apply_change(self, change: RowChange) -> None:
        """Write vectors and histories."""
        self.users.apply_change(change)
        self.items.apply_change(change)
        if self.prior:
            self.prior.apply_change(change)

    def forget(self, user: int, context: ErasureContext) -> RowChange:
        """The user's items, encoded again from their other users; the user's own rows become empty."""
        users, items = np.array([user], dtype=np.int32), context.items
        newest = context.newest(self.settings.history_length)
        others = Histories(self.settings.history_length).recent(items, newest)
        with inference(self):
            (encoded,) = self._encode(Sequences(self.users.cache, *others, USER_SEQUENCE))
        none_left = torch.from_numpy(context.left == 0)[:, None]
        vectors = torch.where(none_left, self.items.cache.unwritten(items), self.items.finished(items, encoded))
        nothing = self.users.histories.rewrite(users, Pending.none(1), np.zeros(1, dtype=np.int64))
        return {
            **self.users.change(users, self.users.cache.unwritten(users), nothing),
            **self.items.change(items, vectors, self.items.histories.rewrite(items, newest, context.left)),
            **(self.prior.forget(context) if self.prior else {}),
        }

    def observe_then_score(self, block: Events, candidates: Rows) -> Tensor:
        """As published: write the vectors before each event (the last of a batch wins), then score the batch."""
        last_user, last_item = last_occurrence(block.users), last_occurrence(block.items)
        users, items = self._before(block)
        with inference(self):
            encoded = self._encode(users[last_user], items[last_item])
            vectors = self._finished(block.users[last_user], block.items[last_item], encoded)
            self.users.cache.write(block.users[last_user], vectors[0])
            self.items.cache.write(block.items[last_item], vectors[1])
            self._append(block)
            return self._match(self.users.cache.read(block.users), candidates, block.users)

    def user_vectors(self, rows: Rows) -> Tensor:
        """Cached vectors (B, D) of users, unit length or zero."""
        return self.users.cache.unit_vectors(rows)

    def item_vectors(self, rows: Rows) -> Tensor:
        """Cached vectors (B, D) of items, unit length or zero."""
        return self.items.cache.unit_vectors(rows)

    # Training

    def batches(self, events: Events, settings: TrainingSettings, epoch: int) -> InTime:
        """Time order, never shuffled."""
        return InTime(events, settings.batch_size, settings.trained_share, (settings.seed, epoch))

    def begin_epoch(self) -> None:
        """The cache is emptied at the start of each epoch; the queues stay."""
        self.reset()

    def loss(self, step: TimeBatch) -> Tensor:
        """Encode both sides of each event from earlier events, write the vectors into the caches, return the loss.

        As published, the vectors are those from before each event. An event that is not trained on is encoded without
        gradients, and only if its vector stays in a cache.
        """
        self.masks.refresh(torch.bfloat16 if self._is_short() else torch.float32)
        batch = step.events
        users, items = self._before(batch)
        trained = np.arange(len(batch)) if step.trained is None else np.flatnonzero(step.trained)
        learned = batch[trained]
        vectors = self._finished(learned.users, learned.items, self._encode(users[trained], items[trained]))
        before = Before.of(self.users, self.items, learned) if self.served else None
        if self.settings.training_writes == "served":
            loss = self._compared(vectors, before, learned.items)
            self.observe(batch)
            return loss
        rest = [np.setdiff1d(last_occurrence(rows), trained) for rows in (batch.users, batch.items)]
        with torch.no_grad():
            encoded = self._encode(users[rest[0]], items[rest[1]])
            others = self._finished(batch.users[rest[0]], batch.items[rest[1]], encoded)
        for i, (cache, rows) in enumerate(((self.users.cache, batch.users), (self.items.cache, batch.items))):
            cache.write(rows[trained], vectors[i])
            cache.write(rows[rest[i]], others[i])  # written last: these are the last events of their rows
        loss = self._compared(vectors, before, learned.items)
        self._append(batch)
        return loss

    def _compared(self, vectors: tuple[Tensor, Tensor], before: Before | None, targets: Rows) -> Tensor:
        """The published loss of encoded users and items; with a served score, the loss of what a service compares."""
        with torch.autocast(self.device.type, enabled=False):
            if before is None or self.served is None:
                loss: Tensor = self.objective(*vectors)
                return loss
            return ServedLoss(self.objective, self.served, self.settings)(*vectors, before, targets)

    def memory(self) -> Tensors:
        """The queues and the state of the dropout generator."""
        memory = {"generator": self.masks.generator.get_state(), "mask_pool": torch.tensor(self.masks.size)}
        for name, queue in self._queues().items():
            memory |= {name: queue.keys.cpu().clone(), f"{name}_next": torch.tensor(queue.next)}
        return memory

    def load_memory(self, memory: Tensors) -> None:
        """Restore what `memory` returned."""
        self.masks.generator.set_state(memory["generator"])
        self.masks.size = int(memory["mask_pool"])
        for name, queue in self._queues().items():
            queue.keys, queue.next = memory[name].to(self.device), int(memory[f"{name}_next"])

    def _queues(self) -> dict[str, Queue]:
        return {name: part for name, part in self.objective.named_children() if isinstance(part, Queue)}

    # State

    def reset(self) -> None:
        """Empty the caches and the histories."""
        self.users.clear()
        self.items.clear()
        if self.prior:
            self.prior.clear()

    def view(self) -> TableState:
        """Vectors and histories of both sides, without a copy on a CPU."""
        return self.users.view() | self.items.view() | (self.prior.view() if self.prior else {})

    def state(self) -> Tensors:
        """Vectors and histories of both sides."""
        return self.users.state() | self.items.state() | (self.prior.state() if self.prior else {})

    def load_state(self, state: Tensors) -> None:
        """Restore what `state` returned."""
        self.users.load_state(state)
        self.items.load_state(state)
        if self.prior:
            self.prior.load_state(state)

    # Encoding and comparing

    def _of_users(self, users: Rows, pending: Pending | None = None) -> Sequences:
        return self.users.sequences(self.items.cache, users, pending)

    def _of_items(self, items: Rows, pending: Pending | None = None) -> Sequences:
        return self.items.sequences(self.users.cache, items, pending)

    def _before(self, block: Events) -> tuple[Sequences, Sequences]:
        """The histories of the user and of the item of each event, as they were just before it."""
        return (
            self._of_users(block.users, Pending.within_block(block.users, block.items)),
            self._of_items(block.items, Pending.within_block(block.items, block.users)),
        )

    def _append(self, block: Events) -> None:
        self.users.histories.append(block.users, block.items)
        self.items.histories.append(block.items, block.users)
        if self.prior:
            self.prior.apply_change(self.prior.change(block.items))

    def _finished(self, users: Rows, items: Rows, encoded: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
        """Vectors of both sides as they are cached and compared."""
        return self.users.finished(users, encoded[0]), self.items.finished(items, encoded[1])

    def _encode(self, *sides: Sequences) -> tuple[Tensor, ...]:
        """Vectors (B, D) of each side's histories."""
        dropout = self.masks if self.training and self.settings.dropout else None
        if not self._is_short():
            return encode(self.encoder, sides, dropout, self.settings.feed_forward, peers=self.peers)
        with torch.autocast("cpu", enabled=False):  # the copy has its precisions: conversions between them take time
            short = self._short_encoder.get()
            return encode(self.encoder, sides, dropout, self.settings.feed_forward, short, self.peers)

    def _is_short(self) -> bool:
        """Whether to encode in bfloat16: in training if the trainer says so by autocast, otherwise by the setting."""
        if self.device.type != "cpu":
            return False  # autocast does it there
        if self.training:
            return torch.is_autocast_enabled("cpu")
        return self.settings.inference_precision == "bfloat16"

    def _match(self, users: Tensor, candidates: Rows, rows: Rows) -> Tensor:
        """Scores (B, C) of user vectors (B, D) and cached items; -inf for an item never observed."""
        items, lengths = self.items.cache.read(candidates), self.items.cache.lengths(candidates)
        unseen = torch.from_numpy(self.items.histories.counts(candidates) == 0).to(self.device)
        if self.settings.score_from == "projections":
            users, items = self.objective.project_users(users), self.objective.project_items(items)
            lengths = items.norm(dim=1)
        users = F.normalize(users, dim=1)
        if self.settings.neighbours:
            users = self._neighbourhood(users, rows)
        scores = dot_products(users, items).div_(lengths.clamp(min=1e-12))
        if self.served:
            scores = self.served(scores, candidates)
        return scores.masked_fill_(unseen, -torch.inf) if bool(unseen.any()) else scores

    def _neighbourhood(self, users: Tensor, rows: Rows) -> Tensor:
        """The mean (B, D) of the nearest other users' unit vectors: averaging scores is averaging vectors."""
        everyone = np.arange(len(self.users.cache))
        vectors, known = self.users.cache.read(everyone), self.users.histories.counts(everyone) > 0
        if self.settings.score_from == "projections":
            vectors = self.objective.project_users(vectors)
        return nearest_mean(users, F.normalize(vectors, dim=1), known, rows, self.settings.neighbours)


FELREC_Q = ModelKind(
    "felrec-q",
    "FELRec as published, contrastive loss against a queue",
    FELRecSettings,
    lambda settings, seed, device, sizes: FELRec(settings, "q", seed, device),
    recipes={"ordinary": ORDINARY},
)
FELREC_P = ModelKind(
    "felrec-p",
    "FELRec as published, predicts the counterpart's projection",
    FELRecSettings,
    lambda settings, seed, device, sizes: FELRec(settings, "p", seed, device),
    recipes={"ordinary": ORDINARY},
)
