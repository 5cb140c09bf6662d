"""Base of models that learn a vector for each item of the training part and cannot represent other items."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from felrec.data.events import Events, Rows
from felrec.model.kernels.dropout import Masks
from felrec.model.kernels.inference import inference
from felrec.model.paper.encoder import initialise
from felrec.recommender import LearnedWeights, Queries, StateOfTables, Tensors

NO_WARMUP = {"warmup": 0.0}  # the authors' schedule for their baselines: cosine decay from the first epoch on


class LearnedItems(LearnedWeights, StateOfTables):
    """Compares a vector of the user with one learned vector per item. Rows from `items` on are unknown.

    A subclass creates its layers and then calls `_begin`.
    """

    def __init__(self, items: int) -> None:
        super().__init__()
        self.items = items

    def _begin(self, dropout: float, seed: int, device: torch.device | str) -> None:
        """Initialise the weights, and create the generator of dropout and negatives."""
        draw_weights(self, torch.Generator().manual_seed(seed))
        self.device = torch.device(device)
        self.to(self.device)
        self.generator = torch.Generator(self.device).manual_seed(seed + 1)
        self.masks = Masks(dropout, self.generator)
        self.dropout = dropout

    @abstractmethod
    def _vectors(self, queries: Queries) -> Tensor:
        """Vectors (B, D) of the users of queries, from exactly their own past."""

    @abstractmethod
    def _item_vectors(self, rows: Tensor) -> Tensor:
        """Vectors (…, D) of known items."""

    def _scores(self, vectors: Tensor, rows: Tensor) -> Tensor:
        """Scores (B, C) of vectors (B, D) and known items (C,)."""
        return vectors @ self._item_vectors(rows).T

    # Scoring

    def score(self, queries: Queries, candidates: Rows) -> Tensor:
        """Scores (B, C); -inf for an item that is not in the training part."""
        known = candidates < self.items
        with inference(self):
            scores = self._scores(self._vectors(queries), self._rows(np.where(known, candidates, 0)))
        return scores if known.all() else scores.masked_fill_(torch.from_numpy(~known).to(self.device), -torch.inf)

    def observe_then_score(self, block: Events, candidates: Rows) -> Tensor:
        """As published: each event is scored from its user's earlier events, so the order makes no difference."""
        scores = self.score(Queries.before_each(block), candidates)
        self.observe(block)
        return scores

    @abstractmethod
    def observe(self, block: Events) -> None:
        """Apply a block of events in time order."""

    def user_vectors(self, rows: Rows) -> Tensor:
        """Current unit vectors (B, D) of users."""
        with inference(self):
            return F.normalize(self._vectors(Queries.now(rows, 0.0)), dim=1)

    def item_vectors(self, rows: Rows) -> Tensor:
        """Unit vectors (B, D) of items, zero if unknown."""
        known = rows < self.items
        with inference(self):
            vectors = F.normalize(self._item_vectors(self._rows(np.where(known, rows, 0))), dim=1)
            return vectors * torch.from_numpy(known[:, None]).to(self.device)

    # Training

    def _draw_masks(self) -> None:
        """Draw dropout masks, once per batch."""
        if self.dropout:
            self.masks.refresh()

    def _active_dropout(self) -> Masks | None:
        return self.masks if self.training and self.dropout else None

    def _negatives(self, targets: int, count: int) -> Tensor:
        """Uniformly random items (T, K)."""
        return torch.randint(self.items, (targets, count), generator=self.generator, device=self.device)

    def memory(self) -> Tensors:
        """The state of the generator."""
        return {"generator": self.generator.get_state(), "mask_pool": torch.tensor(self.masks.size)}

    def load_memory(self, memory: Tensors) -> None:
        """Restore what `memory` returned."""
        self.generator.set_state(memory["generator"])
        self.masks.size = int(memory["mask_pool"])

    def _rows(self, rows: NDArray[np.integer]) -> Tensor:
        return torch.from_numpy(rows.astype(np.int64)).to(self.device)


def draw_weights(module: nn.Module, generator: torch.Generator) -> None:
    """Initialise linear and recurrent layers as usual; vectors of items and users get about unit length."""
    initialise(module, generator)
    for part in module.modules():
        if isinstance(part, nn.Embedding):
            nn.init.normal_(part.weight, std=part.embedding_dim**-0.5, generator=generator)
        elif isinstance(part, nn.RNNBase | nn.RNNCellBase):
            bound = float(part.hidden_size) ** -0.5
            for parameter in part.parameters(recurse=False):
                nn.init.uniform_(parameter, -bound, bound, generator=generator)
