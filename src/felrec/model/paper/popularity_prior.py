"""A popularity prior: how often an item was taken lately, as a part of its score.

InfoNCE with a queue learns log p(item | user) / q(item), where q is how often an item is in the queue. So the cosine
lacks the popularity of items, which a ranking needs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from felrec.abilities import ErasureContext
from felrec.data.events import RowChange, Rows, prefixed, without_prefix
from felrec.data.tables.decayed_counts import DecayedCounts
from felrec.data.tables.table import TableState
from felrec.recommender import Tensors, load_table, state_of

FAST = 3.0  # a few scalars must move faster than the weights of a network, which the optimiser's rate is made for
_LEAST = 0.1  # added to counts: an item whose events have all decayed is not impossible


class PopularityPrior(nn.Module):
    """Logarithms of decayed counts, one for each half-life, times learned weights that begin equal."""

    def __init__(self, half_lives: Sequence[float], device: torch.device) -> None:
        super().__init__()
        self.counts = {f"prior_{half_life:g}_": DecayedCounts(half_life) for half_life in half_lives}
        self.moved = nn.Parameter(torch.zeros(len(half_lives)))
        self.device = device

    @property
    def shares(self) -> Tensor:
        """The weights (H,) of the half-lives."""
        return 1 / len(self.counts) + FAST * self.moved

    def forward(self, items: Rows) -> Tensor:
        """The prior (C,) of items, -inf for one without events."""
        counts = np.stack([counts.of(items) for counts in self.counts.values()], axis=1)  # (C, H)
        logarithms = np.log(np.maximum(counts, 0) + _LEAST).astype(np.float32)
        prior = torch.from_numpy(logarithms).to(self.device) @ self.shares
        unseen = torch.from_numpy(np.isinf(counts[:, 0])).to(self.device)
        return prior.masked_fill(unseen, -torch.inf)

    def change(self, items: Rows) -> RowChange:
        """The counts that events of `items` change."""
        parts = [prefixed(name, counts.change(items)) for name, counts in self.counts.items()]
        return {name: rows for part in parts for name, rows in part.items()}

    def apply_change(self, change: RowChange) -> None:
        """Write what `change` returned."""
        for name, counts in self.counts.items():
            counts.apply_change(without_prefix(name, change))

    def forget(self, context: ErasureContext) -> RowChange:
        """The counts of a user's items without the events of that user."""
        gone = context.items, context.taken, context.left
        parts = [prefixed(name, counts.forget(*gone)) for name, counts in self.counts.items()]
        return {name: rows for part in parts for name, rows in part.items()}

    def clear(self) -> None:
        """Remove all counts."""
        for counts in self.counts.values():
            counts.clear()

    def view(self) -> TableState:
        """The counts, without a copy."""
        parts = [prefixed(name, counts.view()) for name, counts in self.counts.items()]
        return {name: table for part in parts for name, table in part.items()}

    def state(self) -> Tensors:
        """A copy of the counts."""
        parts = [state_of(counts, name) for name, counts in self.counts.items()]
        return {name: table for part in parts for name, table in part.items()}

    def load_state(self, state: Tensors) -> None:
        """Restore what `state` returned."""
        for name, counts in self.counts.items():
            load_table(counts, state, name)
