"""FELRec-Q and FELRec-P in one file: simple, slow and complete, to be read alongside the paper.

Weimann and Conrad, "FELRec: Efficient Handling of Item Cold-Start With Dynamic Representation Learning in Recommender
Systems", arXiv 2210.16928. The cache is a dictionary, a history is a list, and each sequence is encoded by itself.
Nothing else in felrec uses this file: `felrec.py` computes the same numbers fast, and tests compare the two.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math
from collections import defaultdict, deque
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

ITEMS, USERS = 0, 1  # the two kinds of sequence: the items of a user, the users of an item
Event = tuple[int, int]  # a user and an item


class Sizes(NamedTuple):
    """The paper's sizes. In comments, n is the length of a history and B that of a batch."""

    width: int = 128  # D, of every vector
    layers: int = 3
    heads: int = 4
    feed_forward: int = 256
    history_length: int = 64  # N, number of newest entries that are encoded
    dropout: float = 0.1
    queue_size: int = 8192  # K
    temperature: float = 0.07


class SelfAttention(nn.Module):
    """Multi-head attention between all positions. Its projections have no bias."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        width, self.heads = sizes.width, sizes.heads
        self.query_key_value = nn.Linear(width, 3 * width, bias=False)  # three projections in one matrix
        self.output = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """(n, D) -> (n, D)."""
        query, key, value = (part.chunk(self.heads, dim=1) for part in self.query_key_value(x).chunk(3, dim=1))
        heads = zip(query, key, value, strict=True)  # each of the three (n, D / heads)
        mixed = [torch.softmax(q @ k.T / math.sqrt(q.shape[1]), dim=1) @ v for q, k, v in heads]
        return self.output(torch.cat(mixed, dim=1))


class Block(nn.Module):
    """Attention, then a feed-forward layer; after each a residual connection and LayerNorm."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        width, hidden = sizes.width, sizes.feed_forward
        self.attention, self.attention_norm = SelfAttention(sizes), nn.LayerNorm(width)
        self.expand, self.contract = nn.Linear(width, hidden), nn.Linear(hidden, width)
        self.feed_forward_norm, self.dropout = nn.LayerNorm(width), nn.Dropout(sizes.dropout)

    def forward(self, x: Tensor) -> Tensor:
        """(n, D) -> (n, D)."""
        x = self.attention_norm(x + self.dropout(self.attention(x)))
        hidden = self.dropout(torch.relu(self.expand(x)))
        return self.feed_forward_norm(x + self.dropout(self.contract(hidden)))


class Encoder(nn.Module):
    """The encoder f, shared by users and items: encodes the cached vectors of a history as one new vector."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.width, self.history_length = sizes.width, sizes.history_length
        self.types = nn.Parameter(torch.randn(2, sizes.width))  # distinguish sequences of items and of users
        self.dropout, self.input_norm = nn.Dropout(sizes.dropout), nn.LayerNorm(sizes.width)
        self.blocks = nn.ModuleList(Block(sizes) for _ in range(sizes.layers))
        self.output = nn.Linear(sizes.width, sizes.width)

    def forward(self, history: list[Tensor], kind: int) -> Tensor:
        """Encode the vectors (D,) of a history, oldest first, as one vector (D,)."""
        entries = history[-self.history_length :]
        if len(entries) < self.history_length:  # an empty slot precedes a short history, so that none is empty
            entries = [torch.zeros(self.width), *entries]
        age = torch.arange(len(entries) - 1, -1, -1)[:, None]  # (n, 1), 0 for the newest entry
        angle = age * torch.exp(torch.arange(0, self.width, 2) * -(math.log(10_000) / self.width))  # (n, D / 2)
        positions = torch.stack([torch.sin(angle), torch.cos(angle)], dim=2).flatten(1)  # (n, D)
        x = (torch.stack(entries) + self.types[kind]) * math.sqrt(self.width) + positions
        x = self.input_norm(self.dropout(x))
        for block in self.blocks:
            x = block(x)
        return self.output(x.mean(dim=0))


def mlp(inputs: int, hidden: int, outputs: int) -> nn.Sequential:
    """A projection g or a prediction h, used only by the objectives."""
    return nn.Sequential(nn.Linear(inputs, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Linear(hidden, outputs))


class Contrast(nn.Module):
    """FELRec-Q: find the counterpart among the last K projections of its side."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        size, width, self.temperature = sizes.queue_size, sizes.width, sizes.temperature
        self.user_projection, self.item_projection = mlp(width, width, width), mlp(width, width, width)
        start = F.normalize(torch.randn(2, size, width), dim=2)
        self.user_queue, self.item_queue = deque(start[0], maxlen=size), deque(start[1], maxlen=size)

    def forward(self, users: Tensor, items: Tensor) -> Tensor:
        """L_u + L_x of encoded users (B, D) and items (B, D); the batch is added to the queues afterwards."""
        users, items = F.normalize(self.user_projection(users)), F.normalize(self.item_projection(items))
        user_loss = self.info_nce(users, items.detach(), self.item_queue)  # equation 1
        item_loss = self.info_nce(items, users.detach(), self.user_queue)  # equation 2
        self.user_queue.extend(users.detach())
        self.item_queue.extend(items.detach())
        return user_loss + item_loss

    def info_nce(self, queries: Tensor, keys: Tensor, queue: deque[Tensor]) -> Tensor:
        """Mean over the batch of -log softmax of the positive among itself and the queued projections."""
        negatives = torch.stack(list(queue))  # (K, D)
        scores = torch.cat([(queries * keys).sum(dim=1, keepdim=True), queries @ negatives.T], dim=1)  # (B, 1 + K)
        return -torch.log_softmax(scores / self.temperature, dim=1)[:, 0].mean()


class Predict(nn.Module):
    """FELRec-P: predict the projection of the counterpart."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        width, hidden, output = sizes.width, 2 * sizes.width, sizes.width // 2
        self.user_projection, self.item_projection = mlp(width, hidden, output), mlp(width, hidden, output)
        self.user_predictor, self.item_predictor = mlp(output, hidden, output), mlp(output, hidden, output)

    def forward(self, users: Tensor, items: Tensor) -> Tensor:
        """L_u + L_x of encoded users (B, D) and items (B, D)."""
        users, items = self.user_projection(users), self.item_projection(items)
        user_loss = 2 - 2 * F.cosine_similarity(self.user_predictor(users), items.detach())  # equation 3
        item_loss = 2 - 2 * F.cosine_similarity(self.item_predictor(items), users.detach())  # equation 4
        return (user_loss + item_loss).mean()


class ReferenceFELRec(nn.Module):
    """FELRec-Q or FELRec-P: train it with `train_step`, then `score` items and `observe` events, in time order."""

    def __init__(self, variant: Literal["q", "p"], sizes: Sizes = Sizes()) -> None:  # noqa: B008
        super().__init__()
        self.encoder = Encoder(sizes)
        self.objective = Contrast(sizes) if variant == "q" else Predict(sizes)
        self.begin_epoch()

    def begin_epoch(self) -> None:
        """Remove all events and empty the cache; the queues are kept."""
        self.user_cache, self.item_cache = dict[int, Tensor](), dict[int, Tensor]()
        self.items_of, self.users_of = defaultdict[int, list[int]](list), defaultdict[int, list[int]](list)

    def encode(self, history: list[int], cache: dict[int, Tensor], kind: int) -> Tensor:
        """The vector (D,) of a user from their items, or of an item from its users. A missing vector is zero."""
        return self.encoder([cache.get(row, torch.zeros(self.encoder.width)) for row in history], kind)

    def train_step(self, batch: list[Event], optimiser: torch.optim.Optimizer) -> float:
        """Train on a batch of events, with gradients clipped to ±1. Returns the loss."""
        optimiser.zero_grad()
        loss: Tensor = self.train().objective(*self.encode_events(batch))
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_value_(self.parameters(), 1.0)
        optimiser.step()
        return loss.item()

    def encode_events(self, batch: list[Event]) -> tuple[Tensor, Tensor]:
        """Users (B, D) and items (B, D) before each event, also written to the cache; the latest of a batch wins."""
        users, items = [], []
        for user, item in batch:
            users.append(self.encode(self.items_of[user], self.item_cache, ITEMS))
            items.append(self.encode(self.users_of[item], self.user_cache, USERS))
            self.items_of[user].append(item)
            self.users_of[item].append(user)
        for i, (user, item) in enumerate(batch):
            self.user_cache[user], self.item_cache[item] = users[i].detach(), items[i].detach()
        return torch.stack(users), torch.stack(items)

    @torch.no_grad()
    def observe(self, block: list[Event]) -> None:
        """Append events to the histories, then encode their users and items, all from the cache before the block."""
        self.eval()
        for user, item in block:
            self.items_of[user].append(item)
            self.users_of[item].append(user)
        users = {user: self.encode(self.items_of[user], self.item_cache, ITEMS) for user, _ in block}
        items = {item: self.encode(self.users_of[item], self.user_cache, USERS) for _, item in block}
        self.user_cache, self.item_cache = self.user_cache | users, self.item_cache | items

    @torch.no_grad()
    def score(self, user: int, pending: list[int], items: list[int]) -> list[float]:
        """Cosine of a user, with the items of the current block (`pending`), and each item; -inf if not cached."""
        vector = self.eval().encode(self.items_of[user] + pending, self.item_cache, ITEMS)
        cached = [self.item_cache.get(item) for item in items]
        return [-math.inf if x is None else float(F.cosine_similarity(vector, x, dim=0)) for x in cached]
