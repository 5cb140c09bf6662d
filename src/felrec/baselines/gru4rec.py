"""GRU4Rec (Hidasi et al. 2016), with cached sessions as in the paper's Appendix A."""

from __future__ import annotations

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from felrec.baselines.common.learned_items import NO_WARMUP, LearnedItems
from felrec.baselines.common.ranking_losses import bpr
from felrec.config import Settings, TrainingSettings
from felrec.data.batches import TimeBatch
from felrec.data.events import Events, Rows
from felrec.data.pending import Pending
from felrec.data.sessions import Sessions
from felrec.data.split import Sizes
from felrec.data.tables.histories import Histories
from felrec.data.tables.table import Stored
from felrec.model.kernels.dropout import drop
from felrec.model.kernels.inference import inference
from felrec.model.paper.cache import Cache
from felrec.model_kind import ModelKind
from felrec.recommender import Queries, Tensors


class GRU4RecSettings(Settings):
    """GRU4Rec; the defaults are those of the paper and the authors' code."""

    width: int = Field(128, ge=1, description="size of every hidden state")
    layers: int = Field(3, ge=1, description="GRU layers")
    dropout: float = Field(0.1, ge=0, le=0.99, description="dropout rate between the layers")
    negatives: int = Field(8, ge=1, description="random negative items per target")


class OneHotGRUCell(nn.Module):
    """A GRU cell with one-hot inputs: a one-hot vector times a matrix is a row of the matrix."""

    def __init__(self, rows: int, width: int) -> None:
        super().__init__()
        self.rows = nn.Embedding(rows, 3 * width)
        self.bias = nn.Parameter(torch.zeros(3 * width))
        self.hidden = nn.Linear(width, 3 * width)

    def forward(self, rows: Tensor, hidden: Tensor) -> Tensor:
        """The next hidden states (B, D) from input rows (B,) and hidden states (B, D)."""
        reset, update, new = (self.rows(rows) + self.bias).chunk(3, dim=1)
        reset_hidden, update_hidden, new_hidden = self.hidden(hidden).chunk(3, dim=1)
        candidate = torch.tanh(new + torch.sigmoid(reset + reset_hidden) * new_hidden)
        return torch.lerp(candidate, hidden, torch.sigmoid(update + update_hidden))


class GRU4Rec(LearnedItems):
    """One-hot items, GRU layers, a prediction layer with tanh. The hidden states of each user's session are cached.

    A session is stored as its newest item and the hidden states before that item: training learns the step from these
    to a prediction.
    """

    represents = frozenset({"observed", "new_users"})

    def __init__(self, settings: GRU4RecSettings, seed: int, device: torch.device | str, sizes: Sizes) -> None:
        s = settings
        with torch.random.fork_rng(devices=[]):  # layers draw from the global generator: restore it afterwards
            super().__init__(sizes.train_items)
            first = OneHotGRUCell(self.items + 1, s.width)  # row 0 starts a session, row r + 1 is item r
            self.cells = nn.ModuleList([first, *(nn.GRUCell(s.width, s.width) for _ in range(s.layers - 1))])
            self.output = nn.Linear(s.width, self.items)
        self.settings = settings
        self._begin(s.dropout, seed, device)
        self.masks.size = 1 << 16  # initially: a step is short and needs few masks
        self.hidden = Cache(s.layers * s.width, self.device)
        self.newest = Histories(1)

    def _step(self, items: Rows, hidden: Tensor) -> Tensor:
        """The hidden states after the newest items (B,), from the hidden states (B, L·D) before them."""
        dropout = self._active_dropout()
        first, *others = hidden.chunk(self.settings.layers, dim=1)
        states = [self.cells[0](self._rows(items + 1), first)]
        for cell, state in zip(self.cells[1:], others, strict=True):
            states.append(cell(drop(states[-1], dropout), state))
        return torch.cat(states, dim=1)

    def _advance(self, users: Rows, lists: Pending) -> tuple[Rows, Tensor]:
        """Each user's newest item and the hidden states before it, after applying a list of further items."""
        newest, hidden = self.newest.recent(users)[0][:, 0], self.hidden.read(users).clone()
        lengths = lists.stops - lists.starts
        for place in range(lengths.max(initial=0)):
            longer = np.flatnonzero(lengths > place)
            at = self._rows(longer)
            hidden[at] = self._step(newest[longer], hidden[at])
            newest[longer] = lists.values[lists.starts[longer] + place]
        return newest, hidden

    # Scoring and observing

    def _vectors(self, queries: Queries) -> Tensor:
        pending = queries.pending.where(queries.pending.values < self.items)
        return self._top(self._step(*self._advance(queries.users, pending)))

    def _top(self, hidden: Tensor) -> Tensor:
        return hidden[:, -self.settings.width :]

    def _item_vectors(self, rows: Tensor) -> Tensor:
        return self.output.weight[rows]

    def _scores(self, vectors: Tensor, rows: Tensor) -> Tensor:
        """Scores without the tanh of the loss, which keeps the order but rounds values near 1 to ties."""
        return vectors @ self._item_vectors(rows).T + self.output.bias[rows]

    def observe(self, block: Events) -> None:
        """Advance the sessions in time order. Items that are not in the training part are ignored."""
        known = block.items < self.items
        users, lists = Pending.of_owners(block.users[known], block.items[known])
        with inference(self):
            newest, hidden = self._advance(users, lists)
        self.hidden.write(users, hidden)
        self.newest.append(users, newest)

    # Training

    def batches(self, events: Events, settings: TrainingSettings, epoch: int) -> Sessions:
        """Batches of random unfinished sessions."""
        return Sessions(events, settings.batch_size, settings.trained_share, (settings.seed, epoch))

    def begin_epoch(self) -> None:
        """Restart all sessions."""
        self.reset()

    def loss(self, batch: TimeBatch) -> Tensor:
        """The loss of the next item of each session; gradients go back one step, because hidden states are cached."""
        self._draw_masks()
        users, items = batch.events.users, batch.events.items
        after = self._step(*self._advance(users, Pending.none(len(users))))
        self.hidden.write(users, after)
        self.newest.append(users, items)
        trained = slice(None) if batch.trained is None else np.flatnonzero(batch.trained)
        return self._objective(self._top(after)[trained], self._rows(items[trained]))

    def _objective(self, vectors: Tensor, targets: Tensor) -> Tensor:
        rows = torch.cat([targets[:, None], self._negatives(len(targets), self.settings.negatives)], dim=1)  # (B, 1+K)
        scores = torch.einsum("bd,bkd->bk", vectors, self._item_vectors(rows)) + self.output.bias[rows]
        scores = torch.tanh(scores)
        return bpr(scores[:, 0], scores[:, 1:])

    # State

    def reset(self) -> None:
        """Remove all sessions."""
        self.hidden.clear()
        self.newest.clear()

    def state(self) -> Tensors:
        """The sessions."""
        return {"hidden": self.hidden.snapshot(), **super().state()}

    def load_state(self, state: Tensors) -> None:
        """Restore what `state` returned."""
        self.hidden.restore(state["hidden"])
        super().load_state(state)

    def _tables(self) -> dict[str, Stored]:
        return {"": self.newest}


GRU4REC = ModelKind(
    "gru4rec",
    "GRU over one-hot items, with cached sessions",
    GRU4RecSettings,
    GRU4Rec,
    NO_WARMUP | {"epochs": 50, "lr": 0.001},
    one_log=True,
)
