"""The protocols through which training, evaluation and the service use a model.

`score` never changes a recommender; `observe` applies events. Learned weights and the state from events are kept
separately, because the same weights work on another log.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from felrec.config import TrainingSettings
from felrec.data.batches import Batches
from felrec.data.events import Events, RowChange, Rows, Times, without_prefix
from felrec.data.pending import Pending
from felrec.data.tables.table import RowsByTable, Stored, TableState
from felrec.peers import Peers

Tensors = dict[str, Tensor]
Counts = NDArray[np.int64]

EVERYTHING = frozenset({"observed", "new_users", "new_items"})


@dataclass(frozen=True)
class Queries:
    """Users, times, and each user's events that are not observed yet (none when serving)."""

    users: Rows  # (B,)
    times: Times  # (B,)
    pending: Pending  # items, ragged (B, …)
    pending_times: Times | None = None  # of the values of `pending`; None: the time of the query

    @classmethod
    def before_each(cls, block: Events) -> Queries:
        """One query per event of a block, as of just before that event, without its target."""
        places = Pending.within_block(block.users, np.arange(len(block))).compacted()
        if block.weights is not None:  # what speaks against an item is no part of a history
            places = places.where(~(block.weights[places.values] < 0))
        pending = Pending(block.items[places.values], places.starts, places.stops)
        return cls(block.users, block.times, pending, block.times[places.values])

    @classmethod
    def now(cls, users: NDArray[np.integer], time: float) -> Queries:
        """Queries with nothing pending."""
        rows = np.asarray(users, dtype=np.int32)
        return cls(rows, np.full(len(rows), time), Pending.none(len(rows)))

    def __len__(self) -> int:
        return len(self.users)

    def __getitem__(self, window: slice | NDArray[np.integer]) -> Queries:
        return Queries(self.users[window], self.times[window], self.pending[window], self.pending_times)


class Recommender(Protocol):
    """Scores items for users and applies events. Any integer row is a valid user or item."""

    represents: frozenset[str]  # the partitions it can represent, a subset of EVERYTHING

    def score(self, queries: Queries, candidates: Rows) -> Tensor:
        """Scores (B, C); higher is better, -inf for an item it cannot represent. Changes nothing."""
        ...

    def observe(self, block: Events) -> None:
        """Apply a block of events in time order: the only change of state outside training."""
        ...

    def observe_then_score(self, block: Events, candidates: Rows) -> Tensor:
        """Scores (B, C) as in the published evaluation, which sees the block first (protocol `paper`)."""
        ...

    def reset(self) -> None:
        """Remove all events, keep the weights."""
        ...

    def state(self) -> Tensors:
        """A copy of the state from events: caches, histories, counts."""
        ...

    def load_state(self, state: Tensors) -> None:
        """Restore what `state` returned."""
        ...

    def weights(self) -> Tensors:
        """The learned weights; empty for a model without weights."""
        ...

    def load_weights(self, weights: Tensors) -> None:
        """Restore what `weights` returned."""
        ...

    def parameter_count(self) -> int:
        """Number of learned parameters."""
        ...


def usable(recommender: Recommender | Learner, events: Events) -> Events:
    """The events that a recommender learns from: one that does not read weights gets those that count, as equals."""
    return events if getattr(recommender, "reads_weights", False) else events.counting()


def state_of(table: Stored, prefix: str = "") -> Tensors:
    """The arrays of a table, under the names that the whole state uses."""
    return {prefix + name: torch.from_numpy(values) for name, values in table.state().items()}


def load_table(table: Stored, state: Tensors, prefix: str = "") -> None:
    """Restore what `state_of` returned; entries with another prefix are ignored."""
    table.load_state({name: values.numpy() for name, values in without_prefix(prefix, state).items()})


class StateOfTables(ABC):
    """A recommender whose state consists of tables of rows."""

    @abstractmethod
    def _tables(self) -> Mapping[str, Stored]:
        """The tables, by the prefix of their names in the state."""

    def state(self) -> Tensors:
        """A copy of all tables."""
        parts = [state_of(table, prefix) for prefix, table in self._tables().items()]
        return {name: tensor for part in parts for name, tensor in part.items()}

    def load_state(self, state: Tensors) -> None:
        """Restore what `state` returned."""
        for prefix, table in self._tables().items():
            load_table(table, state, prefix)


class Weightless(StateOfTables):
    """A recommender without weights, which only counts events."""

    def observe_then_score(self: Recommender, block: Events, candidates: Rows) -> Tensor:
        """As published: the block is observed before it is scored."""
        self.observe(block)
        return self.score(Queries(block.users, block.times, Pending.none(len(block))), candidates)

    def weights(self) -> Tensors:
        """Always empty."""
        return {}

    def load_weights(self, weights: Tensors) -> None:
        """Nothing to load."""

    def parameter_count(self) -> int:
        """Zero."""
        return 0


class LearnedWeights(nn.Module):
    """A recommender whose weights are the parameters and buffers of a torch module."""

    def weights(self) -> Tensors:
        """A copy of all parameters and buffers, on the CPU."""
        return {name: tensor.detach().cpu().clone() for name, tensor in self.state_dict().items()}

    def load_weights(self, weights: Tensors) -> None:
        """Restore what `weights` returned."""
        self.load_state_dict(weights)

    def parameter_count(self) -> int:
        """Number of learned parameters."""
        return sum(parameter.numel() for parameter in self.parameters())


@runtime_checkable
class Learner(Protocol):
    """The interface for the trainer: a model that is trained by gradient descent and makes its own batches."""

    def batches(self, events: Any, settings: TrainingSettings, epoch: int) -> Batches[Any]:
        """The batches of an epoch; they depend only on the arguments, so that an epoch can be resumed."""
        ...

    def begin_epoch(self) -> None:
        """Prepare for another pass over the training part."""
        ...

    def loss(self, batch: Any) -> Tensor:
        """The loss of one of the `batches`; also applies the batch if training fills the state."""
        ...

    def parameters(self) -> Iterable[torch.nn.Parameter]:
        """The parameters to optimise."""
        ...

    def train(self, mode: bool = True) -> object:
        """Switch dropout and batch statistics on or off."""
        ...

    def memory(self) -> Tensors:
        """State that only training needs to resume: queues and random generators."""
        ...

    def load_memory(self, memory: Tensors) -> None:
        """Restore what `memory` returned."""
        ...

    def state(self) -> Tensors:
        """A copy of the state from events."""
        ...

    def load_state(self, state: Tensors) -> None:
        """Restore what `state` returned."""
        ...

    def weights(self) -> Tensors:
        """The learned weights."""
        ...

    def load_weights(self, weights: Tensors) -> None:
        """Restore what `weights` returned."""
        ...


@runtime_checkable
class Trainable(Recommender, Learner, Protocol):
    """A recommender that can be trained; its batches come from one log's `Events`."""


@runtime_checkable
class Distributable(Trainable, Protocol):
    """A recommender that several processes can train together, each of which computes a share of every batch.

    They make the same calls in the same order. Loss, gradients, weights, state and memory are the same on all of them.
    """

    peers: Peers  # the processes that train it; `ALONE` outside of training


@runtime_checkable
class Servable(Recommender, Protocol):
    """A recommender that computes the change of a block before applying it, so that it can be made durable first.

    `observe` is `change` followed by `apply_change`. Every entry of the state is a table of rows.
    """

    def change(self, block: Events) -> RowChange:
        """The rows that observing a block would write. Does all the work but writes nothing: others may score."""
        ...

    def apply_change(self, change: RowChange) -> None:
        """Write the rows of a change; only copies rows."""
        ...

    def view(self) -> RowsByTable:
        """The rows of `state`, not copied if possible: valid until the next change. There may be more of them."""
        ...


@runtime_checkable
class RowLoading(Servable, Protocol):
    """A servable recommender that can restore its state from rows of a store, without whole arrays of all of them."""

    def load_rows(self, rows: TableState) -> None:
        """Like `load_state`; large tables may be `TrimmedRows`."""
        ...


@runtime_checkable
class ItemScoring(Servable, Protocol):
    """A servable recommender with a part of its score that is the same for every query and can be cached."""

    version: int  # changes with every change of the state or the weights

    def item_scores(self, candidates: Rows) -> Any:
        """The part of the scores of candidates that is the same for every query."""
        ...

    def renew_item_scores(self, scores: Any, change: RowChange) -> bool:
        """Update item scores in place after a change was applied; returns False if they must be computed again."""
        ...

    def score_with(self, queries: Queries, scores: Any) -> Tensor:
        """The same as `score` for the candidates of these item scores."""
        ...
