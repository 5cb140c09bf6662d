"""JODIE* (Kumar et al. 2019, as changed by the FELRec paper): trajectories of users and items, kept up by two RNNs."""

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

_LOG_SECONDS = 10.0  # by which the logarithm of a time is divided: half a day becomes about one


class JODIESettings(Settings):
    """JODIE*; the defaults are those of the paper and the authors' code."""

    width: int = Field(128, ge=1, description="size of every vector")
    time: Literal["off", "on"] = Field("off", description="how long users and items stood still; off is the paper's")
    online_lr: float = Field(0.01, ge=0, description="learning rate of the step for each observed block, 0 for none")


class Moves(NamedTuple):
    """What events do: the item that was expected and the one that came (B, 2D), and both sides before and after."""

    predicted: Tensor
    target: Tensor
    users: Tensor
    users_after: Tensor
    items: Tensor
    items_after: Tensor


class JODIE(LearnedWeights, StateOfTables):
    """An event moves its user and its item; from where the user is, the vector of the next item is predicted.

    A vector of an item is [moved by events, learned]. The same for a user, whose previous item counts too. All events
    of a batch start from where the batch found them. Every block that is observed is also learned from, by one step.
    """

    represents = EVERYTHING

    def __init__(self, settings: JODIESettings, seed: int, device: torch.device | str, sizes: Sizes) -> None:
        super().__init__()
        self.settings, width = settings, settings.width
        with torch.random.fork_rng(devices=[]):  # layers first draw from the global generator: leave it as it was
            self.user_table = nn.Embedding(sizes.users, width)
            self.item_table = nn.Embedding(sizes.items, width)
            self.user_rnn = nn.RNNCell(width + 1, width)
            self.item_rnn = nn.RNNCell(width + 1, width)
            self.prediction = nn.Linear(4 * width, 2 * width)
            self.projection = nn.Linear(1, width)
        self.first_user = nn.Parameter(torch.zeros(width))  # where all users start
        self.first_item = nn.Parameter(torch.zeros(width))
        generator = torch.Generator().manual_seed(seed)
        draw_weights(self, generator)
        for vectors in (self.user_table.weight, self.item_table.weight, self.first_user, self.first_item):
            nn.init.normal_(vectors, generator=generator)
        self.device = torch.device(device)
        self.to(self.device)
        self.adaptation = Adaptation(self, settings.online_lr)
        self.users, self.items = Trajectories(width, self.device), Trajectories(width, self.device)
        self.previous = Histories(1)  # the item that a user took last

    # Scoring and observing

    def score(self, queries: Queries, candidates: Rows) -> Tensor:
        """Cosine (B, C) of the predicted vector and those of the items; -inf for an item never observed."""
        unseen = torch.from_numpy(~self.items.known(candidates)).to(self.device)
        return self._match(queries, candidates).masked_fill_(unseen, -torch.inf)

    def observe(self, block: Events) -> None:
        """Move users and items, and take a step along the gradient of the loss."""
        if not len(block):
            return
        with torch.set_grad_enabled(self.settings.online_lr > 0):
            loss = self._loss(block)
            if self.settings.online_lr > 0:
                self.adaptation.step(loss)

    def observe_then_score(self, block: Events, candidates: Rows) -> Tensor:
        """As published: scored from where the batch found everything; an item without an event counts as learned."""
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
        """All trajectories start again."""
        self.reset()

    def loss(self, batch: TimeBatch) -> Tensor:
        """Three mean squared errors between unit vectors; the batch is applied."""
        return self._loss(batch.events, batch.trained)

    def _loss(self, events: Events, trained: NDArray[np.bool_] | None = None) -> Tensor:
        """The predicted item should be the one that came, and neither side should drift far."""
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
        """The vector (B, 2D) of the next item, from where the user has drifted to and what they took last."""
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
        """How long (B, 1) each has stood still, on a logarithmic scale; zero for the first time and with `time=off`."""
        if self.settings.time == "off":
            return torch.zeros(len(rows), 1, device=self.device)
        seconds = np.nan_to_num(np.maximum(times - side.since(rows), 0))
        return torch.from_numpy(np.log1p(seconds) / _LOG_SECONDS).float().to(self.device)[:, None]

    def memory(self) -> Tensors:
        """Empty: training draws no random numbers."""
        return {}

    def load_memory(self, memory: Tensors) -> None:
        """Nothing to put back."""

    # State and weights

    def reset(self) -> None:
        """Forget all events, and what was learned from them since training."""
        self.adaptation.undo()
        self.users.clear()
        self.items.clear()
        self.previous.clear()

    def state(self) -> Tensors:
        """Trajectories and previous items, and the parameters where events have changed them."""
        return super().state() | self.adaptation.state()

    def load_state(self, state: Tensors) -> None:
        """Put back what `state` returned."""
        super().load_state(state)
        self.adaptation.load_state(state)

    def _tables(self) -> dict[str, Stored]:
        return {"previous.": self.previous, "users.": self.users, "items.": self.items}

    def weights(self) -> Tensors:
        """What training learned."""
        return self.adaptation.trained()

    def load_weights(self, weights: Tensors) -> None:
        """Put back what `weights` returned."""
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
    "users and items moved by RNNs, learning on",
    JODIESettings,
    JODIE,
    NO_WARMUP | {"epochs": 50, "optimizer": "adamw", "lr": 0.1},
    one_log=True,
)
