"""The protocols through which training, evaluation and the service use a model.

`score` never changes a recommender; `observe` applies events. Learned weights and the state from events are kept
separately, because the same weights work on another log.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

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


class Selection(NamedTuple):
    """How many items to find for a query, and which may be found."""

    k: int
    leave_out: Rows  # ascending
    candidates: Rows | None = None  # ascending; None: the whole catalogue


class Found(NamedTuple):
    """The best items for a query."""

    rows: Rows  # best first, at most k
    scores: NDArray[np.floating]
    scored: int  # number of scores that were computed to find them


class Ranking(Protocol):
    """Finds the best items of the whole catalogue without scoring all of them."""

    def best(self, queries: Queries, selections: Sequence[Selection], hidden: Rows) -> list[Found]:
        """The items with the highest scores.

        `hidden` are items to leave out of every answer, ascending. Equal scores are in ascending order of rows.
        """
        ...

    def renew(self, change: RowChange) -> None:
        """Follow a change that was applied to the recommender."""
        ...


@runtime_checkable
class TopK(ItemScoring, Protocol):
    """A recommender that finds the best items without scoring all of them."""

    @property
    def prunes(self) -> bool:
        """Whether it can do so on this machine."""
        ...

    def ranking(self) -> Ranking:
        """Finds the best items of the present weights and state, and after changes that it follows."""
        ...


class Linked(NamedTuple):
    """The items that are most similar to an item."""

    rows: Rows  # most similar first, without the item itself
    scores: NDArray[np.floating]


@runtime_checkable
class Linking(Recommender, Protocol):
    """A recommender that may count which items the same users take: similar items, audiences and neighbours by that."""

    def linked_items(self, item: int) -> Linked | None:
        """The items that were counted together with an item; None if it does not count that."""
        ...

    def users_near_item(self, item: int) -> Rows | None:
        """Users who lately took items that are linked to an item: a few hundred at most; None if it does not count."""
        ...

    def users_near_user(self, user: int) -> Rows | None:
        """Users who lately took the items of a user: a few hundred at most; None if it does not count."""
        ...


class Part(NamedTuple):
    """What one signal adds to a score."""

    signal: str
    gain: float  # by how much the score would be lower if the signal knew nothing of the user and the item
    leads: list[tuple[int, float]]  # the user's items that lead to the item, and how often; those that count most first


@runtime_checkable
class Explaining(Recommender, Protocol):
    """A recommender that can say what its scores are made of."""

    def explain(self, user: int, time: float, items: Rows) -> list[list[Part]]:
        """For each item, what raises its score for a user, most first."""


class Comparison(NamedTuple):
    """How the target of each query compares with the other items."""

    better: Counts  # (B,) items with a higher score
    equal: Counts  # (B,) items with the same score, the target included
    target: NDArray[np.floating]  # (B,) its score
    others: NDArray[np.floating]  # (B, S) scores of the items that were asked for


@runtime_checkable
class Comparing(Recommender, Protocol):
    """A recommender that ranks one item per query without returning the scores of all."""

    def compare(
        self, queries: Queries, candidates: Rows, targets: Rows, leave_out: Pending, others: Rows
    ) -> Comparison | None:
        """Compare targets (B,) with all candidates but those in `leave_out`; None if only `score` can tell.

        The result follows from `score`, within rounding. `leave_out` are candidates, ascending for each query, without
        its target. `others` (B, S) are further candidates whose scores are wanted.
        """
        ...


@dataclass(frozen=True)
class ErasureContext:
    """Some items of a user, and their events without that user: an erasure goes through the items in pieces."""

    items: Rows  # (T,) distinct, ascending
    taken: Counts  # (T,) number of events that are removed
    left: Counts  # (T,) number of events that stay
    order: Rows  # (E,) items of all removed events, oldest first, also those of other pieces
    newest: Callable[[int], Pending]  # users of the last n remaining events of each item, oldest first


@runtime_checkable
class Forgetting(Servable, Protocol):
    """A servable recommender that can erase one user without applying all other events again."""

    def forget(self, user: int, context: ErasureContext) -> RowChange:
        """The rows that erasing a user would write: those of the user and of the items. Does not write them."""
        ...


@runtime_checkable
class Choosable(Recommender, Protocol):
    """A recommender with settings that are chosen on validation (by hr@10)."""

    def choices(self) -> Iterator[tuple[dict[str, Any], Recommender]]:
        """The settings to try, each with a new recommender."""
        ...


@runtime_checkable
class Representing(Recommender, Protocol):
    """A recommender with one vector per user and per item, to compare them."""

    def user_vectors(self, rows: Rows) -> Tensor:
        """Vectors (B, D) of users, unit length or zero."""
        ...

    def item_vectors(self, rows: Rows) -> Tensor:
        """Vectors (B, D) of items, unit length or zero."""
        ...
