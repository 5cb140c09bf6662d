"""Train one set of weights on several logs together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from felrec.config import TrainingSettings
from felrec.data.batches import Batch, Batches
from felrec.data.events import Events
from felrec.recommender import Tensors, Trainable


@dataclass(frozen=True)
class BatchOf:
    """A batch of one of the logs."""

    log: int
    batch: Batch

    def __len__(self) -> int:
        return len(self.batch)


class InTurn:
    """The batches of several logs, spread evenly over one epoch; each log stays in time order.

    >>> [(one.log, one.batch) for one in InTurn(["abcd", "xy"])]
    [(0, 'a'), (1, 'x'), (0, 'b'), (0, 'c'), (1, 'y'), (0, 'd')]
    """

    def __init__(self, logs: Sequence[Batches[Any]]) -> None:
        self.logs = logs
        log = np.repeat(np.arange(len(logs)), [len(batches) for batches in logs])
        step = np.concatenate([np.arange(len(batches)) for batches in logs])
        when = np.concatenate([(np.arange(len(batches)) + 0.5) / len(batches) for batches in logs])
        order = np.lexsort((log, when))
        self.order = list(zip(log[order].tolist(), step[order].tolist(), strict=True))

    def __len__(self) -> int:
        return len(self.order)

    def __getitem__(self, step: int) -> BatchOf:
        log, of_log = self.order[step]
        return BatchOf(log, self.logs[log][of_log])


class MultiLogLearner:
    """Models that share their weights, each with the state of its own log; the trainer sees one model."""

    def __init__(self, models: Sequence[Trainable]) -> None:
        self.models = models

    def batches(self, events: Sequence[Events], settings: TrainingSettings, epoch: int) -> InTurn:
        """The batches of all logs; `events` has one entry per model."""
        return InTurn(
            [model.batches(log, settings, epoch) for model, log in zip(self.models, events, strict=True)],
        )

    def begin_epoch(self) -> None:
        """Prepare every model for another pass."""
        for model in self.models:
            model.begin_epoch()

    def loss(self, batch: BatchOf) -> Tensor:
        """The loss of the model that the batch's log belongs to."""
        return self.models[batch.log].loss(batch.batch)

    def parameters(self) -> Iterable[torch.nn.Parameter]:
        """The parameters that all models share."""
        return self.models[0].parameters()

    def train(self, mode: bool = True) -> None:
        """Switch dropout and batch statistics of all models on or off."""
        for model in self.models:
            model.train(mode)

    def memory(self) -> Tensors:
        """The training memory of each model, with its number as prefix."""
        return _numbered([model.memory() for model in self.models])

    def load_memory(self, memory: Tensors) -> None:
        """Restore what `memory` returned."""
        for number, model in enumerate(self.models):
            model.load_memory(_of(number, memory))

    def state(self) -> Tensors:
        """The state of each model, with its number as prefix."""
        return _numbered([model.state() for model in self.models])

    def load_state(self, state: Tensors) -> None:
        """Restore what `state` returned."""
        for number, model in enumerate(self.models):
            model.load_state(_of(number, state))

    def weights(self) -> Tensors:
        """The weights that all models share."""
        return self.models[0].weights()

    def load_weights(self, weights: Tensors) -> None:
        """Restore what `weights` returned."""
        self.models[0].load_weights(weights)


def _numbered(parts: Sequence[Tensors]) -> Tensors:
    return {f"{number}.{name}": tensor for number, part in enumerate(parts) for name, tensor in part.items()}


def _of(number: int, tensors: Tensors) -> Tensors:
    start = f"{number}."
    return {name.removeprefix(start): tensor for name, tensor in tensors.items() if name.startswith(start)}
