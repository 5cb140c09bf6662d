"""The two objectives: contrast with a queue (FELRec-Q) and predict the counterpart (FELRec-P).

Each takes the encoded users and items (B, D) of a batch, row i of both being one interaction, and
returns the loss. Projections live here because nothing else needs them once training is done.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from felrec.model.paper.heads import Normalisation, mlp
from felrec.model.paper.queue import Queue

_SCORES = 1 << 19  # compared at a time: 2 MB


class Objective(Protocol):
    """Makes the vectors of a user and an item similar when they interact."""

    def __call__(self, users: Tensor, items: Tensor) -> Tensor:
        """The loss of encoded users (B, D) and items (B, D)."""
        ...

    def project_users(self, users: Tensor) -> Tensor:
        """The vectors (B, P) to match with projected items, if scores are to come from projections."""
        ...

    def project_items(self, items: Tensor) -> Tensor:
        """The vectors (B, P) to match with projected users."""
        ...


class Contrast(nn.Module):
    """FELRec-Q: InfoNCE against the queued projections of the other side, L = L_u + L_x (equations 1 and 2)."""

    def __init__(
        self,
        width: int,
        queue_size: int,
        temperature: float,
        normalisation: Normalisation,
        projection: bool,
        share_projections: bool,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.temperature = temperature
        self.user_projection = mlp(width, width, width, normalisation) if projection else nn.Identity()
        self.item_projection = self.user_projection
        if projection and not share_projections:
            self.item_projection = mlp(width, width, width, normalisation)
        self.user_queue = Queue(queue_size, width, generator)
        self.item_queue = Queue(queue_size, width, generator)

    def forward(self, users: Tensor, items: Tensor) -> Tensor:
        """The batch enters the queues after its loss."""
        users = F.normalize(self.project_users(users), dim=1)
        items = F.normalize(self.project_items(items), dim=1)
        loss = info_nce(users, items.detach(), self.item_queue.keys, self.temperature)
        loss = loss + info_nce(items, users.detach(), self.user_queue.keys, self.temperature)
        self.user_queue.push(users)
        self.item_queue.push(items)
        return loss

    def project_users(self, users: Tensor) -> Tensor:
        """(B, D) -> (B, D)."""
        projected: Tensor = self.user_projection(users)
        return projected

    def project_items(self, items: Tensor) -> Tensor:
        """(B, D) -> (B, D)."""
        projected: Tensor = self.item_projection(items)
        return projected


class Predict(nn.Module):
    """FELRec-P: predict the projection of the counterpart, whose gradient is stopped (equations 3 and 4)."""

    def __init__(self, width: int, normalisation: Normalisation, projection: bool, share_projections: bool) -> None:
        super().__init__()
        hidden, output = 2 * width, width // 2 if projection else width
        self.user_projection = mlp(width, hidden, output, normalisation) if projection else nn.Identity()
        self.user_predictor = mlp(output, hidden, output, normalisation)
        self.item_projection, self.item_predictor = self.user_projection, self.user_predictor
        if not share_projections:
            self.item_projection = mlp(width, hidden, output, normalisation) if projection else nn.Identity()
            self.item_predictor = mlp(output, hidden, output, normalisation)

    def forward(self, users: Tensor, items: Tensor) -> Tensor:
        """Mean over the batch of both sides' distances."""
        users, items = self.user_projection(users), self.project_items(items)
        loss = distance(self.user_predictor(users), items.detach())
        return loss + distance(self.item_predictor(items), users.detach())

    def project_users(self, users: Tensor) -> Tensor:
        """What the model predicts of the items of these users, (B, D) -> (B, D/2)."""
        predicted: Tensor = self.user_predictor(self.user_projection(users))
        return predicted

    def project_items(self, items: Tensor) -> Tensor:
        """(B, D) -> (B, D/2)."""
        projected: Tensor = self.item_projection(items)
        return projected


def info_nce(queries: Tensor, keys: Tensor, negatives: Tensor, temperature: float) -> Tensor:
    """Mean of -log softmax of each query (B, D) with its key (B, D) among negatives (K, D).

    Only the queries get a gradient. It is made together with the loss, some queries at a time: the scores (B, K) are
    read while they are in the processor's cache and never kept.
    """
    loss: Tensor = _InfoNCE.apply(queries, keys, negatives, temperature)  # type: ignore[no-untyped-call]
    return loss


class _InfoNCE(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, queries: Tensor, keys: Tensor, negatives: Tensor, temperature: float) -> Tensor:
        queries = queries.to(negatives.dtype)  # under autocast they may be shorter
        gradient = torch.empty_like(queries)
        scaled = queries / temperature
        positive = (scaled * keys).sum(dim=1)  # (B,)
        losses = torch.empty_like(positive)
        for part in _parts(len(queries), len(negatives)):
            weights = (scaled[part] @ negatives.T).to(queries.dtype)  # (b, K)
            highest = torch.maximum(weights.amax(dim=1), positive[part])
            weights.sub_(highest[:, None]).exp_()
            own = torch.exp(positive[part] - highest)
            total = weights.sum(dim=1).add_(own)
            losses[part] = total.log() + highest - positive[part]
            mixed = weights @ negatives + (own - total)[:, None] * keys[part]
            gradient[part] = mixed / (total * temperature)[:, None]
        ctx.save_for_backward(gradient)
        return losses.mean()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        (gradient,) = ctx.saved_tensors
        return gradient * (gradients[0] / len(gradient)), None, None, None


def _parts(queries: int, negatives: int) -> Iterator[slice]:
    """Runs of queries whose scores fit into a processor's cache."""
    step = max(1, _SCORES // negatives)
    for start in range(0, queries, step):
        yield slice(start, start + step)


def distance(predicted: Tensor, target: Tensor) -> Tensor:
    """Mean of 2 - 2 cos, the squared distance of the normalised vectors."""
    return (2 - 2 * F.cosine_similarity(predicted, target, dim=1)).mean()
