"""Vectors that events update, and the times of the updates."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from felrec.data.events import Rows, Times
from felrec.data.tables.growing import GrowingArray
from felrec.model.paper.cache import Cache, last_occurrence


class Trajectories:
    """The vectors of users or items, and the time of the last update of each."""

    def __init__(self, width: int, device: torch.device) -> None:
        self.vectors = Cache(width, device)
        self.moved = GrowingArray(np.float64, fill=np.nan)  # seconds, NaN for never

    def known(self, rows: Rows) -> NDArray[np.bool_]:
        """Whether each row has had an event (B,); False for row -1."""
        return ~np.isnan(self.since(rows))

    def since(self, rows: Rows) -> Times:
        """Time of the last update of each row (B,), NaN for never."""
        return self.moved.read(rows)

    def move(self, rows: Rows, vectors: Tensor, times: Times) -> None:
        """Update rows; of several updates of one row the last one wins."""
        latest = last_occurrence(rows)
        self.vectors.write(rows, vectors)
        self.moved.write(rows[latest], times[latest])

    def clear(self) -> None:
        """Remove all vectors and times."""
        self.vectors.clear()
        self.moved.clear()

    def state(self) -> dict[str, NDArray[Any]]:
        """A copy of the vectors and times."""
        return {"vectors": self.vectors.snapshot().numpy(), "moved": self.moved.values.copy()}

    def load_state(self, state: dict[str, NDArray[Any]]) -> None:
        """Restore what `state` returned."""
        self.vectors.restore(torch.from_numpy(state["vectors"]))
        self.moved.load(state["moved"])
