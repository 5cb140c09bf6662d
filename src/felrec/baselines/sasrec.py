"""SASRec (Kang and McAuley 2018), with the changes of the paper's Appendix A."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn

from felrec.baselines.common.learned_items import NO_WARMUP
from felrec.baselines.common.next_item import NextItem
from felrec.baselines.common.ranking_losses import catalogue_cross_entropy
from felrec.data.split import Sizes
from felrec.data.windows import by_length
from felrec.model.kernels.dropout import drop
from felrec.model.paper.attention import TransformerBlock, TransformerSettings
from felrec.model.paper.encoder import sinusoids
from felrec.model_kind import ModelKind

_POSITIONS = 2048  # positions encoded at a time on a CPU, so that activations stay in its caches


class SASRecSettings(TransformerSettings):
    """SASRec; the defaults are those of the paper and the authors' code."""

    history_length: int = Field(64, ge=1, description="number of a user's newest items that are used")
    loss: Literal["bpr", "cross-entropy"] = Field(
        "bpr", description="against sampled negatives as in the paper, or against the whole catalogue"
    )
    negatives: int = Field(8, ge=1, description="random negative items per target (bpr)")


class SASRec(NextItem):
    """Causal self-attention in FELRec's blocks, fixed positions counted from the newest, a tied prediction layer."""

    codes: Tensor

    def __init__(self, settings: SASRecSettings, seed: int, device: torch.device | str, sizes: Sizes) -> None:
        s = settings
        with torch.random.fork_rng(devices=[]):  # layers draw from the global generator: restore it afterwards
            super().__init__(sizes.train_items, s.width, s.history_length, s.negatives)
            self.register_buffer("codes", sinusoids(s.history_length, s.width), persistent=False)
            self.input_norm = nn.LayerNorm(s.width)
            blocks = (TransformerBlock(s.width, s.heads, s.feed_forward, causal=True) for _ in range(s.layers))
            self.blocks = nn.ModuleList(blocks)
            self.output = nn.Linear(s.width, s.width)
        self.settings = settings
        self._begin(s.dropout, seed, device)

    def _groups(self, lengths: NDArray[np.int64]) -> Iterable[NDArray[np.int64]]:
        """On a CPU, sequences of similar length are grouped, so that little padding is computed."""
        return by_length(lengths, _POSITIONS) if self.device.type == "cpu" else super()._groups(lengths)

    def _encode(self, inputs: Tensor, lengths: Tensor) -> Tensor:
        dropout = self._active_dropout()
        # Padding is on the right, which causal attention never reads, so no mask is needed.
        age = (lengths[:, None] - 1 - torch.arange(inputs.shape[1], device=self.device)).clamp_(min=0)
        x = self.table(inputs) * math.sqrt(self.settings.width) + self.codes[age]  # (B, N, D)
        x = self.input_norm(drop(x, dropout))
        for block in self.blocks:
            x = block(x, None, dropout)
        encoded: Tensor = self.output(x)
        return encoded

    def _objective(self, vectors: Tensor, targets: Tensor) -> Tensor:
        if self.settings.loss == "bpr":
            return super()._objective(vectors, targets)
        return catalogue_cross_entropy(vectors, self.table.weight[1:], targets)

    def _total(self, summed: Tensor, targets: int) -> Tensor:
        return summed if self.settings.loss == "bpr" else summed / targets


SASREC = ModelKind(
    "sasrec",
    "causal self-attention over learned items",
    SASRecSettings,
    SASRec,
    NO_WARMUP | {"epochs": 50, "lr": 0.001},
    one_log=True,
)
