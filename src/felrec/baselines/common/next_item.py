"""Base of SASRec and GRU4Rec-BPTT: predict a user's next item from the last N items."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from felrec.baselines.common.learned_items import LearnedItems
from felrec.baselines.common.ranking_losses import bpr
from felrec.config import TrainingSettings
from felrec.data.events import Events, Rows
from felrec.data.tables.histories import Histories
from felrec.data.tables.table import Stored
from felrec.data.windows import WindowBatch, Windows
from felrec.recommender import Queries


class NextItem(LearnedItems):
    """Encodes each position of a sequence from itself and earlier positions; inputs and outputs share item vectors.

    A history shorter than N is preceded by an empty position with its own vector, so that no history is empty.
    """

    represents = frozenset({"observed", "new_users"})

    def __init__(self, items: int, width: int, history_length: int, negatives: int) -> None:
        super().__init__(items)
        self.table = nn.Embedding(items + 1, width)  # row 0 is the empty position, row r + 1 is item r
        self.negatives = negatives
        self.histories = Histories(history_length)

    @abstractmethod
    def _encode(self, inputs: Tensor, lengths: Tensor) -> Tensor:
        """Encode table rows (B, N), padded on the right, as vectors (B, N, D) that predict the next item of each."""

    def _groups(self, lengths: NDArray[np.int64]) -> Iterable[NDArray[np.int64]]:
        """Indices of sequences that are encoded together: all of them."""
        return [np.arange(len(lengths))] if len(lengths) else []

    def _item_vectors(self, rows: Tensor) -> Tensor:
        vectors: Tensor = self.table(rows + 1)
        return vectors

    # Scoring and observing

    def _vectors(self, queries: Queries) -> Tensor:
        pending = queries.pending.where(queries.pending.values < self.items)
        inputs, lengths = oldest_first(*self.histories.recent(queries.users, pending))
        vectors = torch.empty(len(queries), self.table.embedding_dim, device=self.device)
        for group in self._groups(lengths):
            encoded = self._encoded(inputs[group], lengths[group])
            last = torch.arange(len(group), device=self.device), self._rows(lengths[group] - 1)
            vectors[self._rows(group)] = encoded[last]
        return vectors

    def observe(self, block: Events) -> None:
        """Append to the histories. Items that are not in the training part are ignored."""
        known = block.items < self.items
        self.histories.append(block.users[known], block.items[known])

    # Training

    def batches(self, events: Events, settings: TrainingSettings, epoch: int) -> Windows:
        """Shuffled windows. They are not in time order, so the histories are filled here, with all events."""
        self.reset()
        self.observe(events)
        seed = (settings.seed, epoch)
        return Windows(events, self.histories.length, settings.batch_size, settings.trained_share, seed)

    def begin_epoch(self) -> None:
        """Nothing to prepare: windows contain all training data."""

    def loss(self, batch: WindowBatch) -> Tensor:
        """The loss over every position of every window."""
        self._draw_masks()
        losses = []
        for group in self._groups(batch.lengths):
            lengths = batch.lengths[group]
            encoded = self._encoded(batch.inputs[group], lengths)
            inside = np.arange(encoded.shape[1]) < lengths[:, None]
            targets = self._rows(batch.targets[group, : encoded.shape[1]][inside])
            losses.append(self._objective(encoded[torch.from_numpy(inside).to(self.device)], targets))
        return self._total(torch.stack(losses).sum(), len(batch))

    def _objective(self, vectors: Tensor, targets: Tensor) -> Tensor:
        """The summed loss of vectors (T, D) that should predict the items `targets` (T,)."""
        positive = torch.einsum("td,td->t", vectors, self._item_vectors(targets))
        others = self._item_vectors(self._negatives(len(targets), self.negatives))  # (T, K, D)
        return bpr(positive, torch.einsum("td,tkd->tk", vectors, others))

    def _total(self, summed: Tensor, targets: int) -> Tensor:
        """The loss of a batch: for BPR the plain sum."""
        return summed

    def _encoded(self, inputs: Rows, lengths: NDArray[np.int64]) -> Tensor:
        return self._encode(self._rows(inputs[:, : lengths.max()] + 1), self._rows(lengths))

    # State

    def reset(self) -> None:
        """Empty the histories."""
        self.histories.clear()

    def _tables(self) -> dict[str, Stored]:
        return {"": self.histories}


def oldest_first(rows: Rows, mask: NDArray[np.bool_]) -> tuple[Rows, NDArray[np.int64]]:
    """Left-aligned histories (B, N) and their lengths, with an empty position before each history shorter than N.

    >>> rows, lengths = oldest_first(np.array([[-1, -1, 5], [6, 7, 8]]), np.array([[False, False, True], [True] * 3]))
    >>> rows.tolist(), lengths.tolist()
    ([[-1, 5, 5], [6, 7, 8]], [2, 3])
    """
    size = rows.shape[1]
    lengths = np.minimum(mask.sum(axis=1) + 1, size)
    at = np.minimum(size - lengths[:, None] + np.arange(size), size - 1)  # values after the newest are not used
    return np.take_along_axis(rows, at, axis=1), lengths
