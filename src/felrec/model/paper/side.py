"""One side of the interactions, users or items: the cached vector and the last counterparts of each."""

from __future__ import annotations

import torch
from torch import Tensor

from felrec.data.events import RowChange, Rows, prefixed, without_prefix
from felrec.data.pending import Pending
from felrec.data.tables.histories import Histories
from felrec.data.tables.table import TableState
from felrec.model.kernels.sequences import Sequences
from felrec.model.paper.cache import Cache, as_array
from felrec.model.paper.directions import direction
from felrec.model.paper.encoder import USER_SEQUENCE
from felrec.model.paper.settings import FELRecSettings
from felrec.model.signals.seeds import SeededCache, seeds
from felrec.recommender import Tensors, load_table, state_of


class Side:
    """The state of all users or of all items; the names of its tables start with `prefix`, as in `user_cache`."""

    def __init__(self, prefix: str, kind: int, settings: FELRecSettings, device: torch.device) -> None:
        self.prefix, self.kind = prefix, kind
        seeded = settings.cache == "seeded"
        self.cache = SeededCache(settings.width, kind, device) if seeded else Cache(settings.width, device)
        self.histories = Histories(settings.history_length)
        self._unit = settings.written == "unit"
        self._seed_share = settings.seed_share if kind == USER_SEQUENCE else 0.0  # only items keep their seeds

    def sequences(self, counterparts: Cache, rows: Rows, pending: Pending | None = None) -> Sequences:
        """The histories of `rows` (B,) and pending events, with vectors from the cache of the other side."""
        return Sequences(counterparts, *self.histories.recent(rows, pending), self.kind)

    def finished(self, rows: Rows, encoded: Tensor) -> Tensor:
        """The vectors (B, D) of `rows` as they are cached and compared; as encoded, in the paper's recipe."""
        vectors = direction(encoded) if self._unit else encoded
        if not self._seed_share:
            return vectors
        vectors = vectors + self._seed_share * seeds(rows, self.cache.width, self.kind).to(vectors)
        return direction(vectors) if self._unit else vectors

    def change(self, rows: Rows, vectors: Tensor, histories: RowChange) -> RowChange:
        """New vectors and histories of distinct rows, as a change of the tables."""
        return {f"{self.prefix}cache": (rows, as_array(vectors)), **prefixed(self.prefix, histories)}

    def apply_change(self, change: RowChange) -> None:
        """Write what `change` returned."""
        self.cache.apply_change(*change[f"{self.prefix}cache"])
        self.histories.apply_change(without_prefix(self.prefix, change))

    def clear(self) -> None:
        """Remove all vectors and histories."""
        self.cache.clear()
        self.histories.clear()

    def view(self) -> TableState:
        """Vectors and histories, without a copy on a CPU."""
        vectors = self.cache.vectors.cpu().numpy()
        return {f"{self.prefix}cache": vectors, **prefixed(self.prefix, self.histories.view())}

    def state(self) -> Tensors:
        """A copy of vectors and histories."""
        return {f"{self.prefix}cache": self.cache.snapshot(), **state_of(self.histories, self.prefix)}

    def load_state(self, state: Tensors) -> None:
        """Restore what `state` returned."""
        self.cache.restore(state[f"{self.prefix}cache"])
        load_table(self.histories, state, self.prefix)
