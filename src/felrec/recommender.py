"""The protocols: all that training, evaluation and the service know about a model.

A recommender learns nothing from being asked (`score`) and everything from events (`observe`). Learned
weights and what events left behind are kept apart, because the same weights work on another log.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
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
from felrec.data.tables.table import Stored

Tensors = dict[str, Tensor]
Counts = NDArray[np.int64]

EVERYTHING = frozenset({"observed", "new_users", "new_items"})


@dataclass(frozen=True)
class Queries:
    """Who asks, when, and which of their own events are not observed yet (none when serving)."""

    users: Rows  # (B,)
    times: Times  # (B,)
    pending: Pending  # items, ragged (B, …)
    pending_times: Times | None = None  # of the values of `pending`; just now unless given

    @classmethod
    def before_each(cls, block: Events) -> Queries:
        """One query per event of a block, as it stood just before that event. Targets are not in it."""
        places = Pending.within_block(block.users, np.arange(len(block))).compacted()
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
    """Scores items for users and takes events in. Any integer row is a valid user or item."""

    represents: frozenset[str]  # the partitions it can represent, out of EVERYTHING

    def score(self, queries: Queries, candidates: Rows) -> Tensor:
        """Scores (B, C), higher is better, -inf for an item it cannot represent. Changes nothing."""
        ...

    def observe(self, block: Events) -> None:
        """Take in a block of events in time order: the only change of state outside training."""
        ...

    def observe_then_score(self, block: Events, candidates: Rows) -> Tensor:
        """Scores (B, C) as in the published evaluation, which sees the block first (protocol `paper`)."""
        ...

    def reset(self) -> None:
        """Forget all events, keep the weights."""
        ...

    def state(self) -> Tensors:
        """A copy of what events left: caches, histories, counts."""
        ...

    def load_state(self, state: Tensors) -> None:
        """Put back what `state` returned."""
        ...

    def weights(self) -> Tensors:
        """What was learned and is shipped; empty for a model without weights."""
        ...

    def load_weights(self, weights: Tensors) -> None:
        """Put back what `weights` returned."""
        ...

    def parameter_count(self) -> int:
        """Number of learned parameters."""
        ...


def state_of(table: Stored, prefix: str = "") -> Tensors:
    """The arrays of a part of the state, named as the whole state names them."""
    return {prefix + name: torch.from_numpy(values) for name, values in table.state().items()}


def load_table(table: Stored, state: Tensors, prefix: str = "") -> None:
    """Put back what `state_of` returned; entries with another prefix are ignored."""
    table.load_state({name: values.numpy() for name, values in without_prefix(prefix, state).items()})


class StateOfTables(ABC):
    """A recommender whose state is tables of rows."""

    @abstractmethod
    def _tables(self) -> Mapping[str, Stored]:
        """The tables, by the prefix of their names in the state."""

    def state(self) -> Tensors:
        """A copy of all tables."""
        parts = [state_of(table, prefix) for prefix, table in self._tables().items()]
        return {name: tensor for part in parts for name, tensor in part.items()}

    def load_state(self, state: Tensors) -> None:
        """Put back what `state` returned."""
        for prefix, table in self._tables().items():
            load_table(table, state, prefix)


class Weightless(StateOfTables):
    """A recommender that counts instead of learning."""

    def observe_then_score(self: Recommender, block: Events, candidates: Rows) -> Tensor:
        """The published order: the block is observed before it is scored."""
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
        """Put back what `weights` returned."""
        self.load_state_dict(weights)

    def parameter_count(self) -> int:
        """Number of learned parameters."""
        return sum(parameter.numel() for parameter in self.parameters())


@runtime_checkable
class Learner(Protocol):
    """What a trainer needs: something that learns by gradient from batches that it cuts an epoch into itself."""

    def batches(self, events: Any, settings: TrainingSettings, epoch: int) -> Batches[Any]:
        """The batches of an epoch; they depend on the arguments alone, so that an epoch can be resumed."""
        ...

    def begin_epoch(self) -> None:
        """Prepare for another pass over the training part."""
        ...

    def loss(self, batch: Any) -> Tensor:
        """The loss of one of the `batches`; where training fills the state, the batch is taken into it."""
        ...

    def parameters(self) -> Iterable[torch.nn.Parameter]:
        """What the optimiser changes."""
        ...

    def train(self, mode: bool = True) -> object:
        """Switch dropout and batch statistics on or off."""
        ...

    def memory(self) -> Tensors:
        """What only training needs in order to resume: queues and random generators."""
        ...

    def load_memory(self, memory: Tensors) -> None:
        """Put back what `memory` returned."""
        ...

    def state(self) -> Tensors:
        """A copy of what events left."""
        ...

    def load_state(self, state: Tensors) -> None:
        """Put back what `state` returned."""
        ...

    def weights(self) -> Tensors:
        """What was learned."""
        ...

    def load_weights(self, weights: Tensors) -> None:
        """Put back what `weights` returned."""
        ...


@runtime_checkable
class Trainable(Recommender, Learner, Protocol):
    """A recommender that learns; its batches are of one log's `Events`."""


@runtime_checkable
class Servable(Recommender, Protocol):
    """A recommender whose change by a block is known before it happens, so that it can be made durable first.

    `observe` is `apply_change` after `change`. Every entry of the state is a table of rows.
    """

    def change(self, block: Events) -> RowChange:
        """What observing a block would write. All the work is here, and it reads only: others may go on asking."""
        ...

    def apply_change(self, change: RowChange) -> None:
        """Write it: copies of rows, nothing else."""
        ...


@runtime_checkable
class ItemScoring(Servable, Protocol):
    """A servable recommender whose score has a part that is the same for every query, so that it can be kept."""

    version: int  # changes with every change of the state or the weights

    def item_scores(self, candidates: Rows) -> Any:
        """The part of the scores of candidates that is the same for every query."""
        ...

    def renew_item_scores(self, scores: Any, change: RowChange) -> bool:
        """Bring item scores up to date, in place, with a change that was just applied; False: compute them again."""
        ...

    def score_with(self, queries: Queries, scores: Any) -> Tensor:
        """What `score` returns for the candidates of these item scores."""
        ...


@dataclass(frozen=True)
class ErasureContext:
    """What is left of the items that a user had, without that user."""

    items: Rows  # (T,) distinct
    taken: Counts  # (T,) events that go
    left: Counts  # (T,) events that stay
    order: Rows  # (E,) the items of the events that go, oldest first
    newest: Callable[[int], Pending]  # the users of the last n that stay, of each item, oldest first


@runtime_checkable
class Forgetting(Servable, Protocol):
    """A servable recommender that can drop one user without taking in everyone else's events again."""

    def forget(self, user: int, remains: ErasureContext) -> RowChange:
        """What dropping a user would write: their own rows, and those of the items they had. Reads only."""
        ...


@runtime_checkable
class Choosable(Recommender, Protocol):
    """A recommender with a setting that is chosen on validation (by hr@10) instead of learned."""

    def choices(self) -> Iterator[tuple[dict[str, Any], Recommender]]:
        """The settings to try, each with a fresh recommender that has them."""
        ...


@runtime_checkable
class Representing(Recommender, Protocol):
    """A recommender with one vector per user and per item: similar items, neighbours, audiences."""

    def user_vectors(self, rows: Rows) -> Tensor:
        """Vectors (B, D) of users, unit length or zero."""
        ...

    def item_vectors(self, rows: Rows) -> Tensor:
        """Vectors (B, D) of items, unit length or zero."""
        ...
