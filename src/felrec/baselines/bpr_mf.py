"""BPR-MF (Rendle et al. 2009): a vector for each user and each item of the training part."""

from __future__ import annotations

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from felrec.baselines.common.learned_items import NO_WARMUP, LearnedItems
from felrec.baselines.common.ranking_losses import bpr
from felrec.config import Settings, TrainingSettings
from felrec.data.events import Events
from felrec.data.shuffled import Shuffled
from felrec.data.split import Sizes
from felrec.data.tables.table import Stored
from felrec.model_kind import ModelKind
from felrec.recommender import Queries


class BPRMFSettings(Settings):
    """BPR-MF; the defaults are those of the paper and the authors' code."""

    width: int = Field(128, ge=1, description="size of every vector")
    negatives: int = Field(1, ge=1, description="random negative items per target")


class BPRMF(LearnedItems):
    """The score is a dot product. The model has no state besides its weights; a new user is the mean of all users."""

    represents = frozenset({"observed"})

    def __init__(self, settings: BPRMFSettings, seed: int, device: torch.device | str, sizes: Sizes) -> None:
        with torch.random.fork_rng(devices=[]):  # layers draw from the global generator: restore it afterwards
            super().__init__(sizes.train_items)
            self.user_table = nn.Embedding(sizes.train_users, settings.width)
            self.item_table = nn.Embedding(sizes.train_items, settings.width)
        self.negatives = settings.negatives
        self._begin(0.0, seed, device)

    def _vectors(self, queries: Queries) -> Tensor:
        known = queries.users < self.user_table.num_embeddings
        vectors: Tensor = self.user_table(self._rows(np.where(known, queries.users, 0)))
        if not known.all():
            vectors[torch.from_numpy(~known).to(self.device)] = self.user_table.weight.mean(dim=0)
        return vectors

    def _item_vectors(self, rows: Tensor) -> Tensor:
        vectors: Tensor = self.item_table(rows)
        return vectors

    def observe(self, block: Events) -> None:
        """Ignored: only training changes this model."""

    def batches(self, events: Events, settings: TrainingSettings, epoch: int) -> Shuffled:
        """Events in random order."""
        return Shuffled(events, settings.batch_size, settings.trained_share, (settings.seed, epoch))

    def begin_epoch(self) -> None:
        """Nothing to prepare: the model has no state."""

    def loss(self, batch: Events) -> Tensor:
        """Rank the item of each event above random items."""
        users = self.user_table(self._rows(batch.users))  # (B, D)
        positive = torch.einsum("bd,bd->b", users, self._item_vectors(self._rows(batch.items)))
        others = self._item_vectors(self._negatives(len(batch), self.negatives))  # (B, K, D)
        return bpr(positive, torch.einsum("bd,bkd->bk", users, others))

    def reset(self) -> None:
        """Nothing to reset: the model has no state."""

    def _tables(self) -> dict[str, Stored]:
        return {}


BPR_MF = ModelKind(
    "bpr-mf",
    "one learned vector per user and item",
    BPRMFSettings,
    BPRMF,
    NO_WARMUP | {"epochs": 100, "batch_size": 4096, "lr": 0.01, "weight_decay": 0.001},
    one_log=True,
)
