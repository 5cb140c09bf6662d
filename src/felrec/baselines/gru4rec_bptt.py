"""GRU4Rec-BPTT: the paper's variant of GRU4Rec with backpropagation through time (Appendix A)."""

from __future__ import annotations

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from felrec.baselines.common.learned_items import NO_WARMUP
from felrec.baselines.common.next_item import NextItem
from felrec.config import Settings
from felrec.data.split import Sizes
from felrec.model.kernels.dropout import drop
from felrec.model_kind import ModelKind


class GRU4RecBPTTSettings(Settings):
    """GRU4Rec-BPTT; the defaults are those of the paper and the authors' code."""

    width: int = Field(128, ge=1, description="size of every vector")
    layers: int = Field(3, ge=1, description="GRU layers")
    dropout: float = Field(0.1, ge=0, le=0.99, description="dropout rate before each layer")
    history_length: int = Field(64, ge=1, description="number of a user's newest items that are used")
    negatives: int = Field(8, ge=1, description="random negative items per target")


class GRU4RecBPTT(NextItem):
    """Item vectors, GRU layers, a linear layer, and item vectors again to predict; no output activation."""

    def __init__(self, settings: GRU4RecBPTTSettings, seed: int, device: torch.device | str, sizes: Sizes) -> None:
        s = settings
        with torch.random.fork_rng(devices=[]):  # layers draw from the global generator: restore it afterwards
            super().__init__(sizes.train_items, s.width, s.history_length, s.negatives)
            # Separate layers, because the dropout inside a multi-layer GRU cannot use our generator.
            self.layers = nn.ModuleList(nn.GRU(s.width, s.width, batch_first=True) for _ in range(s.layers))
            self.output = nn.Linear(s.width, s.width)
        self._begin(s.dropout, seed, device)

    def _encode(self, inputs: Tensor, lengths: Tensor) -> Tensor:
        packed = pack_padded_sequence(self.table(inputs), lengths.cpu(), batch_first=True, enforce_sorted=False)
        dropout = self._active_dropout()
        for layer in self.layers:
            packed, _ = layer(packed._replace(data=drop(packed.data, dropout)))
        x, _ = pad_packed_sequence(packed, batch_first=True)  # (B, N, D)
        encoded: Tensor = self.output(x)
        return encoded


GRU4REC_BPTT = ModelKind(
    "gru4rec-bptt",
    "GRU over learned items, trained through time",
    GRU4RecBPTTSettings,
    GRU4RecBPTT,
    NO_WARMUP | {"epochs": 50, "lr": 0.001},
    one_log=True,
)
