"""The authors' implementation, imported from a checkout and never copied. Only this file uses its names."""

from __future__ import annotations

import functools
import sys
import warnings
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch.utils.data import DataLoader, Subset

from felrec.config import TrainingSettings
from felrec.data.events import Events
from felrec.model.paper.felrec import FELRec


@dataclass(frozen=True)
class Authors:
    """The modules of the authors' checkout."""

    felrec: Any
    sasrec: Any
    gru4rec: Any
    reclib: Any

    @classmethod
    def load(cls, checkout: Path) -> Authors:
        """Import the modules without writing bytecode into the checkout."""
        sys.dont_write_bytecode = True
        sys.path.insert(0, str(checkout))
        warnings.filterwarnings("ignore", "The given NumPy array is not writable")  # pandas 3 under their datasets
        names = ("trainer.FELRec", "trainer.SASRec", "trainer.GRU4Rec", "reclib")
        return cls(*(import_module(name) for name in names))

    def sessions(self, events: Events, length: int = 64) -> Any:
        """Their dataset of the same events; ids start at 1 because 0 is their padding."""
        return self._sessions(pd.DataFrame({"user": events.users + 1, "item": events.items + 1}), length)

    def _sessions(self, frame: pd.DataFrame, length: int) -> Any:
        sides = [
            self.sasrec.BidirectionalMaskedSessionDataset(
                self.gru4rec.SessionDataset(frame, session_len=length, user_col=owner, item_col=other)
            )
            for owner, other in (("user", "item"), ("item", "user"))
        ]
        return self.felrec.SessionDataset(*sides)

    def model_like(self, ours: FELRec) -> Any:
        """Their FELRec-Q of the same sizes, with the same caches."""
        s = ours.settings
        encoder = self.felrec.Encoder(
            num_layers=s.layers, num_heads=s.heads, d_model=s.width, d_ff=s.feed_forward, dropout=s.dropout
        )
        users, items = ours.users.cache.snapshot(), ours.items.cache.snapshot()
        model = self.felrec.FELRecQ(
            encoder=encoder, num_users=len(users) + 1, num_items=len(items) + 1, K=s.queue_size, T=s.temperature
        )
        model.user_embeddings[1:], model.item_embeddings[1:] = users, items
        return model

    def rank_and_hits(self, scores: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Their normalised rank and hit rate at 10 over the whole catalogue."""
        metrics = self.reclib.metrics
        return metrics.normalized_rank(scores, targets), metrics.HR(scores, targets, k=10)

    def load_log(self, folder: Path, length: int = 64) -> Any:
        """Read, sort, split, number and index a log in their folder `ml-25m`, in the same steps as their main()."""
        movielens, tools = import_module("reclib.dataset.movielens"), self.reclib.utils.data
        data = movielens.load_data(str(folder), download=False)
        data.sort_values(by=["timestamp", "event_id"], inplace=True)
        parts = tools.split(data, val_size=0.1, test_size=0.1, divisible_by=1024)
        data = pd.concat(parts)
        tools.remap_ids(data, col="user")
        tools.remap_ids(data, col="item")
        data["_index"] = range(len(data))
        parts = [data.loc[part.index] for part in parts]
        return self._sessions(data, length), parts


class Reference:
    """Their model and data in the middle of a log: trains, encodes and evaluates any range of its events."""

    def __init__(self, checkout: Path, ours: FELRec, events: Events, training: TrainingSettings) -> None:
        self.authors = Authors.load(checkout)
        self.model = self.authors.model_like(ours)
        self.events = events
        self.sessions = self.authors.sessions(events, ours.settings.history_length)
        self.batch_size = training.batch_size
        self.optimiser = torch.optim.SGD(self.model.parameters(), training.lr, training.momentum)
        self.loading: list[float] = []  # seconds per event spent waiting for data, for each range trained on

    @classmethod
    def of(cls, checkout: Path | None, *rest: Any) -> Reference | None:
        """The reference, or None without a checkout."""
        return cls(checkout, *rest) if checkout else None

    def train(self, start: int, stop: int) -> int:
        """SGD steps as in their training loop; returns the number of events."""
        step = self.authors.felrec.train_step_Q()
        _, data, _ = self.authors.reclib.optim.train_epoch(self.model, self.optimiser, step, self._batches(start, stop))
        self.loading.append(data.value / self.batch_size)  # their meter has the mean over batches
        return stop - start

    def encode(self, start: int, stop: int) -> int:
        """Forward passes in evaluation mode, which fill their caches; returns the number of events."""
        self.authors.reclib.optim.eval_epoch(
            self.model, [], lambda model, data: model(*data), self._batches(start, stop)
        )
        return stop - start

    def test(self, start: int, stop: int) -> int:
        """Their test pass: rank among all items so far, hit rate at 10 of 100 samples; returns the number of events."""
        metrics, tools = self.authors.reclib.metrics, self.authors.reclib.utils
        so_far = np.unique(self.events.items[:start]).astype(np.int64) + 1
        mask = self.authors.felrec.create_mask(so_far, size=self.model.num_items)
        hits = functools.partial(metrics.HR, k=10)
        self.authors.reclib.optim.eval_epoch(
            self.model,
            [metrics.normalized_rank, lambda scores, targets: hits(*tools.draw_samples(scores, targets, ns=100))],
            self.authors.felrec.eval_step(mask),
            self._batches(start, stop),
        )
        return stop - start

    def _batches(self, start: int, stop: int) -> Any:
        return DataLoader(Subset(self.sessions, range(start, stop)), batch_size=self.batch_size)
