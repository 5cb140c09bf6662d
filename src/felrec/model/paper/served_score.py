"""The score that a service would give, and its loss: the softmax over the catalogue as it was before the event.

The published loss compares a freshly encoded user with the freshly encoded target, among projections of earlier steps.
A service compares it with cached vectors of all items. Training on the same comparison leaves no way to win by telling
fresh from stale vectors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from felrec.data.events import Events, Rows
from felrec.model.paper.directions import direction
from felrec.model.paper.objectives import Contrast, Predict
from felrec.model.paper.popularity_prior import FAST, PopularityPrior
from felrec.model.paper.settings import FELRecSettings
from felrec.model.paper.side import Side

_MOST = 1 << 15  # items that a batch is compared with; of a larger catalogue, a sample


@dataclass(frozen=True)
class Before:
    """What was cached before a batch of events."""

    candidates: Rows  # (C,) ascending
    items: Tensor  # (C, D) their vectors
    stand_for: Tensor  # (C,) logarithm of the number of items of the catalogue that each candidate stands for
    users: Tensor  # (B, D) vectors of the users of the events

    @classmethod
    def of(cls, users: Side, items: Side, events: Events) -> Before:
        """Copy what a batch will overwrite; of a large catalogue the targets and a sample of the others."""
        catalogue = np.flatnonzero(items.histories.counts(np.arange(items.histories.owners))).astype(np.int32)
        candidates, stand_for = _sampled(catalogue, events.items)
        device = items.cache.device
        return cls(
            candidates,
            items.cache.read(candidates).clone(),
            torch.from_numpy(stand_for).to(device),
            users.cache.read(events.users).clone(),
        )

    def places(self, targets: Rows) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Which targets were in the catalogue, and where those are among the candidates."""
        known = np.isin(targets, self.candidates)
        return known, np.searchsorted(self.candidates, targets[known])


def _sampled(catalogue: Rows, targets: Rows) -> tuple[Rows, NDArray[np.float32]]:
    """At most `_MOST` items, and the targets among the catalogue, with the logarithm of how many each stands for."""
    if len(catalogue) <= _MOST:
        return catalogue, np.zeros(len(catalogue), dtype=np.float32)
    wanted = np.intersect1d(catalogue, targets)
    others = np.setdiff1d(catalogue, wanted)
    generator = np.random.default_rng(int(targets.astype(np.int64).sum()))  # a resumed run draws the same
    drawn = generator.choice(others, _MOST - min(len(wanted), _MOST // 2), replace=False)
    candidates = np.union1d(wanted, drawn).astype(np.int32)
    share = np.where(np.isin(candidates, wanted), 0.0, math.log(len(others) / len(drawn)))
    return candidates, share.astype(np.float32)


class ServedScore(nn.Module):
    """A learned scale times the cosine, plus the popularity prior if there is one."""

    def __init__(self, temperature: float, prior: PopularityPrior | None) -> None:
        super().__init__()
        self.temperature, self.prior = temperature, prior
        self.moved = nn.Parameter(torch.tensor(0.0))

    @property
    def scale(self) -> Tensor:
        """What the cosine is multiplied by; it begins as one over the temperature."""
        return (FAST * self.moved).exp() / self.temperature

    def forward(self, cosines: Tensor, candidates: Rows) -> Tensor:
        """Scores (B, C) of cosines (B, C)."""
        scores = cosines * self.scale
        if self.prior is not None:
            scores = scores + self.prior(candidates)
        return scores

    def loss(self, users: Tensor, items: Tensor, before: Before, targets: Rows) -> Tensor:
        """Cross-entropy of the targets (B,) that were in the catalogue; zero if none was."""
        known, places = before.places(targets)
        scores: Tensor = self(users[torch.from_numpy(known).to(users.device)] @ items.T, before.candidates)
        if not len(places):
            return scores.sum()
        return F.cross_entropy(scores + before.stand_for, torch.from_numpy(places).to(users.device))


class ServedLoss:
    """The loss of a batch, with the score that a service would have given.

    With the whole catalogue as negatives it replaces L_u, and the cached users are the keys of L_x. Otherwise the
    published loss is kept, and the softmax only fits the few scalars of the score.
    """

    def __init__(self, objective: Contrast | Predict, score: ServedScore, settings: FELRecSettings) -> None:
        self.objective, self.score, self.settings = objective, score, settings

    def __call__(self, users: Tensor, items: Tensor, before: Before, targets: Rows) -> Tensor:
        """The loss of encoded users and items (B, D)."""
        if self.settings.negatives == "catalogue":
            of_users = self.score.loss(*self._projected(users, before), before, targets)
            return of_users + self.settings.item_loss * self.objective.item_loss(items, before.users)
        loss: Tensor = self.objective(users, items)
        with torch.no_grad():
            projected = self._projected(users, before)
        return loss + self.score.loss(*projected, before, targets)

    def _projected(self, users: Tensor, before: Before) -> tuple[Tensor, Tensor]:
        objective = self.objective
        return direction(objective.project_users(users)), direction(objective.project_items(before.items))
