"""JODIE* (Kumar et al. 2019, as changed by the FELRec paper): trajectories of users and items, updated by two RNNs."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from felrec.baselines.common.adaptation import Adaptation
from felrec.baselines.common.learned_items import NO_WARMUP, draw_weights
from felrec.baselines.common.trajectories import Trajectories
from felrec.config import Settings, TrainingSettings
from felrec.data.batches import InTime, TimeBatch
from felrec.data.events import Events, Rows, Times
from felrec.data.pending import Pending
from felrec.data.split import Sizes
from felrec.data.tables.histories import Histories
from felrec.data.tables.table import Stored
from felrec.model_kind import ModelKind
from felrec.recommender import EVERYTHING, LearnedWeights, Queries, StateOfTables, Tensors

_LOG_SECONDS = 10.0  # divisor of the logarithm of a duration: half a day becomes about one


class JODIESettings(Settings):
    """JODIE*; the defaults are those of the paper and the authors' code."""

    width: int = Field(128, ge=1, description="size of every vector")
    time: Literal["off", "on"] = Field("off", description="use the time since the last event; off as in the paper")
    online_lr: float = Field(0.01, ge=0, description="learning rate of the step per observed block; 0: no step")


class Moves(NamedTuple):
    """The effect of events: predicted and actual item vectors (B, 2D), and both sides before and after."""

    predicted: Tensor
    target: Tensor
    users: Tensor
    users_after: Tensor
    items: Tensor
    items_after: Tensor


class JODIE(LearnedWeights, StateOfTables):
    """An event updates the vectors of its user and its item; the user's vector predicts that of the next item.

    An item's vector is [updated by events, learned]. So is a user's, which also includes the previous item. All events
    of a batch start from the vectors before the batch. The model also trains on every observed block, with one step.
    """

    represents = EVERYTHING

    def __init__(self, settings: JODIESettings, seed: int, device: torch.device | str, sizes: Sizes) -> None:
        super().__init__()
        self.settings, width = settings, settings.width
        with torch.random.fork_rng(devices=[]):  # layers draw from the global generator: restore it afterwards
            self.user_table = nn.Embedding(sizes.users, width)
            self.item_table = nn.Embedding(sizes.items, width)
            self.user_rnn = nn.RNNCell(width + 1, width)
            self.item_rnn = nn.RNNCell(width + 1, width)
            self.prediction = nn.Linear(4 * width, 2 * width)
            self.projection = nn.Linear(1, width)
        self.first_user = nn.Parameter(torch.zeros(width))  # the initial vector of all users
        self.first_item = nn.Parameter(torch.zeros(width))
        generator = torch.Generator().manual_seed(seed)
        draw_weights(self, generator)
        for vectors in (self.user_table.weight, self.item_table.weight, self.first_user, self.first_item):
            nn.init.normal_(vectors, generator=generator)
        self.device = torch.device(device)
        self.to(self.device)
        self.adaptation = Adaptation(self, settings.online_lr)
        self.users, self.items = Trajectories(width, self.device), Trajectories(width, self.device)
        self.previous = Histories(1)  # the last item of each user

    # Scoring and observing

    def score(self, queries: Queries, candidates: Rows) -> Tensor:
        """Cosine (B, C) of the predicted vector and the vectors of items; -inf for an item never observed."""
        unseen = torch.from_numpy(~self.items.known(candidates)).to(self.device)
        return self._match(queries, candidates).masked_fill_(unseen, -torch.inf)

    def observe(self, block: Events) -> None:
        """Update users and items, and take one optimiser step on the loss."""
        if not len(block):
            return
        with torch.set_grad_enabled(self.settings.online_lr > 0):
            loss = self._loss(block)
            if self.settings.online_lr > 0:
                self.adaptation.step(loss)

    def observe_then_score(self, block: Events, candidates: Rows) -> Tensor:
        """As published: score from the vectors before the batch; an item without events has its learned vector."""
        scores = self._match(Queries.before_each(block), candidates)
        self.observe(block)
        return scores

    @torch.no_grad()
    def _match(self, queries: Queries, candidates: Rows) -> Tensor:
        previous = self.previous.recent(queries.users, queries.pending)[0][:, 0]
        elapsed = self._elapsed(self.users, queries.users, queries.times)
        predicted = self._predict(self._users(queries.users), queries.users, previous, elapsed)
        items = torch.cat([self.items.vectors.read(candidates), _learned(self.item_table, candidates)], dim=1)
        return F.normalize(predicted, dim=1) @ F.normalize(items, dim=1).T

    # Training

    def batches(self, events: Events, settings: TrainingSettings, epoch: int) -> InTime:
        """Time order, never shuffled."""
        return InTime(events, settings.batch_size, settings.trained_share, (settings.seed, epoch))

    def begin_epoch(self) -> None:
        """Reset all trajectories."""
        self.reset()

    def loss(self, batch: TimeBatch) -> Tensor:
        """The sum of three mean squared errors between unit vectors; also applies the batch."""
        return self._loss(batch.events, batch.trained)

    def _loss(self, events: Events, trained: NDArray[np.bool_] | None = None) -> Tensor:
        """Penalises wrong predictions of the item and large updates of either side."""
        moves = self._moves(events)
        self.users.move(events.users, moves.users_after.detach(), events.times)
        self.items.move(events.items, moves.items_after.detach(), events.times)
        self.previous.append(events.users, events.items)
        if trained is not None:
            chosen = torch.from_numpy(trained).to(self.device)
            moves = Moves(*(tensor[chosen] for tensor in moves))
        return (
            _distance(moves.predicted, moves.target)
            + _distance(moves.users_after, moves.users)
            + _distance(moves.items_after, moves.items)
        )

    def _moves(self, events: Events) -> Moves:
        pending = Pending.within_block(events.users, events.items)
        previous = self.previous.recent(events.users, pending)[0][:, 0]
        user_time = self._elapsed(self.users, events.users, events.times)
        item_time = self._elapsed(self.items, events.items, events.times)
        users, items = self._users(events.users), self._items(events.items)
        return Moves(
            predicted=self._predict(users, events.users, previous, user_time),
            target=torch.cat([items, _learned(self.item_table, events.items)], dim=1),
            users=users,
            users_after=self.user_rnn(torch.cat([items, user_time], dim=1), users),
            items=items,
            items_after=self.item_rnn(torch.cat([users, item_time], dim=1), items),
        )

    def _predict(self, users: Tensor, rows: Rows, previous: Rows, elapsed: Tensor) -> Tensor:
        """Predict the vector (B, 2D) of the next item from the user's projected vector and previous item."""
        projected = users * (1 + self.projection(elapsed))
        last = [self._items(previous), _learned(self.item_table, previous)]
        predicted: Tensor = self.prediction(torch.cat([projected, *last, _learned(self.user_table, rows)], dim=1))
        return predicted

    def _users(self, rows: Rows) -> Tensor:
        return self._placed(self.users, rows, self.first_user)

    def _items(self, rows: Rows) -> Tensor:
        return self._placed(self.items, rows, self.first_item)

    def _placed(self, side: Trajectories, rows: Rows, first: Tensor) -> Tensor:
        known = torch.from_numpy(side.known(rows)).to(self.device)
        return torch.where(known[:, None], side.vectors.read(rows), first)

    def _elapsed(self, side: Trajectories, rows: Rows, times: Times) -> Tensor:
        """Log time (B, 1) since the last update of each row; zero for the first event and with `time=off`."""
        if self.settings.time == "off":
            return torch.zeros(len(rows), 1, device=self.device)
        seconds = np.nan_to_num(np.maximum(times - side.since(rows), 0))
        return torch.from_numpy(np.log1p(seconds) / _LOG_SECONDS).float().to(self.device)[:, None]

    def memory(self) -> Tensors:
        """Empty: training draws no random numbers."""
        return {}

    def load_memory(self, memory: Tensors) -> None:
        """Nothing to restore."""

    # State and weights

    def reset(self) -> None:
        """Remove all trajectories, and undo the training on observed blocks."""
        self.adaptation.undo()
        self.users.clear()
        self.items.clear()
        self.previous.clear()

    def state(self) -> Tensors:
        """Trajectories, previous items, and the parameters if observed blocks have changed them."""
        return super().state() | self.adaptation.state()

    def load_state(self, state: Tensors) -> None:
        """Restore what `state` returned."""
        super().load_state(state)
        self.adaptation.load_state(state)

    def _tables(self) -> dict[str, Stored]:
        return {"previous.": self.previous, "users.": self.users, "items.": self.items}

    def weights(self) -> Tensors:
        """The trained parameters, without the changes of observed blocks."""
        return self.adaptation.trained()

    def load_weights(self, weights: Tensors) -> None:
        """Restore what `weights` returned."""
        self.adaptation.load_trained(weights)


def _learned(table: nn.Embedding, rows: Rows) -> Tensor:
    """Learned vectors (B, D); zero for row -1 and for rows beyond the table."""
    inside = (rows >= 0) & (rows < table.num_embeddings)
    at = torch.from_numpy(np.where(inside, rows, 0).astype(np.int64)).to(table.weight.device)
    vectors: Tensor = table(at) * torch.from_numpy(inside[:, None]).to(table.weight.device)
    return vectors


def _distance(vectors: Tensor, target: Tensor) -> Tensor:
    return F.mse_loss(F.normalize(vectors, dim=1), F.normalize(target.detach(), dim=1))


JODIE_STAR = ModelKind(
    "jodie",
    "users and items updated by RNNs, trained online",
    JODIESettings,
    JODIE,
    NO_WARMUP | {"epochs": 50, "optimizer": "adamw", "lr": 0.1},
    one_log=True,
)
