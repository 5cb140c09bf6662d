"""Caches the query-independent part of scores between requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from torch import Tensor

from felrec.data.events import RowChange, Rows
from felrec.recommender import ItemScoring, Queries, Recommender, Servable


@dataclass
class _Kept:
    rows: Rows
    scores: Any  # of the model
    version: int  # version of the model that the scores belong to


class ItemScoreCache:
    """Scores with one recommender and caches the item scores of the whole catalogue until they change.

    Several threads may call `score` at the same time, but not while another one calls `apply_change`.
    """

    def __init__(self, recommender: Recommender) -> None:
        self._recommender = recommender
        self._model = recommender if isinstance(recommender, ItemScoring) else None
        self._kept: _Kept | None = None

    def score(self, queries: Queries, candidates: Rows) -> Tensor:
        """The same as the recommender's `score`."""
        if self._model is None:
            return self._recommender.score(queries, candidates)
        return self._model.score_with(queries, self._item_scores(self._model, candidates))

    def apply_change(self, change: RowChange) -> None:
        """Apply a change to the recommender and update the cached scores."""
        model, kept = self._model, self._current()
        self._servable.apply_change(change)
        if model is not None and kept is not None and model.renew_item_scores(kept.scores, change):
            kept.version = model.version

    @property
    def _servable(self) -> Servable:
        return cast(Servable, self._recommender)

    def _item_scores(self, model: ItemScoring, candidates: Rows) -> Any:
        kept = self._current()
        if kept is not None and np.array_equal(kept.rows, candidates):
            return kept.scores
        scores = model.item_scores(candidates)
        if len(candidates) and int(candidates[-1]) == len(candidates) - 1:  # the whole catalogue; subsets seldom recur
            self._kept = _Kept(candidates, scores, model.version)
        return scores

    def _current(self) -> _Kept | None:
        model, kept = self._model, self._kept
        return kept if kept is not None and model is not None and kept.version == model.version else None
