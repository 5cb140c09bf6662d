"""What does not depend on who asks: the candidates, and how popular each of them is.

A service asks often between two events, and nearly always for everything. So an offer is kept, and what an event has
touched is computed anew: in chunks that always have the same shape, because the last bits of a product depend on how
many rows it has, and a service that was started again must give the same answers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from felrec.data.events import Rows
from felrec.model.counts import Counts
from felrec.model.evidence import Catalogue
from felrec.model.horizons import HALF_LIVES

FEATURES = 3 + len(HALF_LIVES)  # count, decayed counts, the horizon of the moment, age
_BACKGROUND = 1e-6  # share of all events that an item without any is taken to have
_CHUNK = 1024  # candidates

Popularity = Callable[[Tensor], Tensor]  # of features (M, FEATURES), scores (M, members or 1)


@dataclass(frozen=True)
class Offer:
    """Candidates and what makes them popular."""

    among: Catalogue
    features: Tensor  # (C, FEATURES)
    popularity: Tensor  # (C, members of a model that learns, or 1)
    moment: int  # of the counts it was made from

    @classmethod
    def of(cls, candidates: Rows, counts: Counts, adaptive: bool, popularity: Popularity) -> Offer:
        """Look all candidates up."""
        among = Catalogue.of(candidates, counts.items)
        features = item_features(candidates, counts, adaptive)
        if torch.is_grad_enabled():
            return cls(among, features, popularity(features), counts.horizons.moment)
        offer = cls(among, features, torch.empty(len(candidates), 1), counts.horizons.moment)
        offer._compute(range(0, len(candidates), _CHUNK), popularity)
        return offer

    def renew(self, touched: Rows, counts: Counts, adaptive: bool, popularity: Popularity) -> None:
        """Look those up again that events have touched since; whoever reads an offer must not do so meanwhile."""
        known = touched[touched < len(self.among.columns) - 1]
        columns = self.among.columns[known]
        known, columns = known[columns >= 0], columns[columns >= 0]
        self.among.events[columns] = counts.items.counts(known)
        self.features[columns] = item_features(known, counts, adaptive)
        self._compute(np.unique(columns // _CHUNK * _CHUNK).tolist(), popularity)

    def _compute(self, starts: list[int] | range, popularity: Popularity) -> None:
        for start in starts:
            chunk = self.features[start : start + _CHUNK]
            missing = _CHUNK - len(chunk)
            if missing:
                chunk = torch.cat([chunk, chunk.new_zeros(missing, FEATURES)])
            self.popularity[start : start + _CHUNK] = popularity(chunk)[: _CHUNK - missing]


def item_features(items: Rows, counts: Counts, adaptive: bool) -> Tensor:
    """What popularity is read from (C, FEATURES): all that more is better of, then the age."""
    decayed = counts.horizons.counts(items)
    events, ages = counts.items.counts(items), counts.horizons.ages(items)
    features = torch.zeros(len(items), FEATURES)
    features[:, 0] = torch.log1p(torch.from_numpy(events))
    features[:, 1:-2] = torch.log1p(torch.from_numpy(10 * decayed))  # numpy's takes seven times as long
    if adaptive:
        trusted = (counts.horizons.shares(decayed) * counts.domain.horizon_weights).sum(axis=1)
        features[:, -2] = torch.from_numpy(np.log(trusted / _BACKGROUND + 1) / 2)
    features[:, -1] = torch.log1p(torch.from_numpy(ages)) / 5
    return features
