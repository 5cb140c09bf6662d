"""Vectors that events move, and when each was moved."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from felrec.data.events import Rows, Times
from felrec.model.paper.cache import Cache
from felrec.recommender import Tensors


class Trajectories:
    """Where the users or the items are: a vector that events move, and when it was moved last."""

    def __init__(self, width: int, device: torch.device) -> None:
        self.vectors = Cache(width, device)
        self.moved = np.zeros(0)  # seconds, NaN for never

    def known(self, rows: Rows) -> NDArray[np.bool_]:
        """Whether an event has placed each of them (B,); row -1 is nobody."""
        return ~np.isnan(self.since(rows))

    def since(self, rows: Rows) -> Times:
        """When each was moved last (B,), NaN for never."""
        inside = (rows >= 0) & (rows < len(self.moved))
        return np.where(inside, self.moved[np.where(inside, rows, 0)] if len(self.moved) else 0, np.nan)

    def move(self, rows: Rows, vectors: Tensor, times: Times) -> None:
        """Of several moves of one row the last one counts."""
        self.vectors.write(rows, vectors)
        if len(self.vectors) > len(self.moved):
            room = np.full(max(len(self.vectors), 2 * len(self.moved)) - len(self.moved), np.nan)
            self.moved = np.concatenate([self.moved, room])  # by doubling, so that growth stays cheap
        self.moved[rows] = times

    def clear(self) -> None:
        """Forget everything."""
        self.vectors.clear()
        self.moved = np.zeros(0)

    def state(self) -> Tensors:
        """A copy of both."""
        return {"vectors": self.vectors.snapshot(), "moved": torch.from_numpy(self.moved[: len(self.vectors)].copy())}

    def load_state(self, vectors: Tensor, moved: Tensor) -> None:
        """Put back what `state` returned."""
        self.vectors.restore(vectors)
        self.moved = moved.numpy().copy()
