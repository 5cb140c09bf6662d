"""The two objectives: contrast with a queue (FELRec-Q) and predict the counterpart (FELRec-P).

Each computes a loss that makes the vectors of a user and an item similar when they interact. The inputs are the encoded
users and items (B, D) of a batch; row i of both is one interaction. The heads are here because only training uses them.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from felrec.model.kernels.info_nce import info_nce
from felrec.model.paper.directions import direction
from felrec.model.paper.heads import Normalisation, Projection, head
from felrec.model.paper.queue import Queue


class Contrast(nn.Module):
    """FELRec-Q: InfoNCE against the queued projections of the other side, L = L_u + L_x (equations 1 and 2)."""

    def __init__(
        self,
        width: int,
        queue_size: int,
        temperature: float,
        normalisation: Normalisation,
        projection: Projection,
        share_projections: bool,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.temperature = temperature
        self.user_projection = head(projection, width, width, width, normalisation)
        self.item_projection = self.user_projection
        if not share_projections:
            self.item_projection = head(projection, width, width, width, normalisation)
        self.user_queue = Queue(queue_size, width, generator)
        self.item_queue = Queue(queue_size, width, generator)

    def forward(self, users: Tensor, items: Tensor) -> Tensor:
        """The loss of a batch, which is then added to the queues."""
        users = F.normalize(self.project_users(users), dim=1)
        items = F.normalize(self.project_items(items), dim=1)
        loss = info_nce(users, items.detach(), self.item_queue.keys, self.temperature)
        loss = loss + info_nce(items, users.detach(), self.user_queue.keys, self.temperature)
        self.user_queue.push(users)
        self.item_queue.push(items)
        return loss

    def item_loss(self, items: Tensor, users: Tensor) -> Tensor:
        """L_x alone, of encoded items and the vectors of their users, which are then added to the queue."""
        queries = direction(self.project_items(items))
        keys = direction(self.project_users(users)).detach()
        loss = info_nce(queries, keys, self.user_queue.keys, self.temperature)
        self.user_queue.push(keys)
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

    def __init__(
        self, width: int, normalisation: Normalisation, projection: Projection, share_projections: bool
    ) -> None:
        super().__init__()
        hidden, output = 2 * width, width // 2 if projection == "mlp" else width
        predictor: Projection = "residual" if projection == "residual" else "mlp"
        self.user_projection = head(projection, width, hidden, output, normalisation)
        self.user_predictor = head(predictor, output, hidden, output, normalisation)
        self.item_projection, self.item_predictor = self.user_projection, self.user_predictor
        if not share_projections:
            self.item_projection = head(projection, width, hidden, output, normalisation)
            self.item_predictor = head(predictor, output, hidden, output, normalisation)

    def forward(self, users: Tensor, items: Tensor) -> Tensor:
        """The mean distance over the batch, summed over both sides."""
        users, items = self.user_projection(users), self.project_items(items)
        loss = distance(self.user_predictor(users), items.detach())
        return loss + distance(self.item_predictor(items), users.detach())

    def item_loss(self, items: Tensor, users: Tensor) -> Tensor:
        """L_x alone, of encoded items and the vectors of their users."""
        return distance(self.item_predictor(self.item_projection(items)), self.user_projection(users).detach())

    def project_users(self, users: Tensor) -> Tensor:
        """Predicted projections of the items of these users, (B, D) -> (B, D/2)."""
        predicted: Tensor = self.user_predictor(self.user_projection(users))
        return predicted

    def project_items(self, items: Tensor) -> Tensor:
        """(B, D) -> (B, D/2)."""
        projected: Tensor = self.item_projection(items)
        return projected


def distance(predicted: Tensor, target: Tensor) -> Tensor:
    """Mean of 2 - 2 cos, the squared distance of the normalised vectors."""
    return (2 - 2 * F.cosine_similarity(predicted, target, dim=1)).mean()
