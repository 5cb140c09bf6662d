"""Finds the best items for queries, and caches the query-independent part of scores between requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from felrec.abilities import Found, Ranking, Selection, TopK
from felrec.data.events import RowChange, Rows
from felrec.recommender import ItemScoring, Queries, Recommender, Servable

_NOTHING = np.zeros(0, dtype=np.int32)


@dataclass
class _Kept:
    rows: Rows  # 0, 1, 2, … of the whole catalogue
    scores: Any  # of the model
    version: int  # version of the model that the scores belong to


class ItemScoreCache:
    """Scores with one recommender and caches the item scores of the whole catalogue until they change.

    Several threads may call `score` and `best` at the same time, but not while another one calls `apply_change`.
    """

    def __init__(self, recommender: Recommender) -> None:
        self._recommender = recommender
        self._model = recommender if isinstance(recommender, ItemScoring) else None
        self._top_k = recommender if isinstance(recommender, TopK) else None
        self._kept: _Kept | None = None
        self._ranking: tuple[Ranking, int] | None = None  # with the version of the model that it belongs to

    @property
    def prunes(self) -> bool:
        """Whether the best items of a large catalogue are found without scoring all of them."""
        return self._top_k is not None and self._top_k.prunes

    def score(self, queries: Queries, candidates: Rows) -> Tensor:
        """The same as the recommender's `score`."""
        if self._model is None:
            return self._recommender.score(queries, candidates)
        return self._model.score_with(queries, self._item_scores(self._model, candidates))

    def best(
        self, queries: Queries, selections: Sequence[Selection], catalogue: int, hidden: Rows = _NOTHING
    ) -> list[Found]:
        """The best items for each query, from a catalogue of so many items without the `hidden` ones."""
        model, ranking = self._top_k, self._current_ranking()
        if model is None or not self.prunes or not catalogue:
            return self._ranked(queries, selections, catalogue, hidden)
        if ranking is None:
            if all(selection.candidates is not None for selection in selections):  # a few items are scored sooner
                return self._ranked(queries, selections, catalogue, hidden)
            ranking = model.ranking()
            self._ranking = (ranking, model.version)
        return ranking.best(queries, selections, hidden)

    def apply_change(self, change: RowChange) -> None:
        """Apply a change to the recommender and update the cached scores."""
        kept, ranking = self._current(), self._current_ranking()
        self._servable.apply_change(change)
        self._renew(kept, ranking, change)

    def _renew(self, kept: _Kept | None, ranking: Ranking | None, change: RowChange) -> None:
        """Let what was current before a change follow it."""
        model = self._model
        if model is not None and kept is not None and model.renew_item_scores(kept.scores, change):
            kept.version = model.version
        if model is not None and ranking is not None:
            ranking.renew(change)
            self._ranking = (ranking, model.version)

    @property
    def _servable(self) -> Servable:
        return cast(Servable, self._recommender)

    def _ranked(self, queries: Queries, selections: Sequence[Selection], catalogue: int, hidden: Rows) -> list[Found]:
        """The best items by scoring all; queries for the whole catalogue are scored together."""
        every = np.arange(catalogue, dtype=np.int32)
        whole = np.flatnonzero([selection.candidates is None for selection in selections])
        scores = iter(self.score(queries[whole], every) if len(whole) and catalogue else torch.zeros(len(whole), 0))
        answers = []
        for at, selection in enumerate(selections):
            if selection.candidates is None:
                rows, of_query = every, next(scores)
            else:
                rows = selection.candidates
                of_query = self.score(queries[at : at + 1], rows)[0] if len(rows) else torch.zeros(0)
            answers.append(_top(rows, of_query, selection, hidden))
        return answers

    def _item_scores(self, model: ItemScoring, candidates: Rows) -> Any:
        """Item scores of candidates."""
        kept = self._current()
        if kept and np.array_equal(kept.rows, candidates):
            return kept.scores
        scores = model.item_scores(candidates)
        if len(candidates) and int(candidates[-1]) == len(candidates) - 1:  # the whole catalogue; subsets seldom recur
            self._kept = _Kept(candidates, scores, model.version)
        return scores

    def _current(self) -> _Kept | None:
        model, kept = self._model, self._kept
        return kept if kept is not None and model is not None and kept.version == model.version else None

    def _current_ranking(self) -> Ranking | None:
        model, ranking = self._model, self._ranking
        return ranking[0] if ranking is not None and model is not None and ranking[1] == model.version else None


def _top(rows: Rows, scores: Tensor, selection: Selection, hidden: Rows) -> Found:
    """The best of rows (C,) by their scores (C,), without those left out and those that cannot be scored."""
    out = np.isin(rows, np.concatenate([selection.leave_out, hidden]))
    allowed = scores.cpu().masked_fill(torch.from_numpy(out), -torch.inf) if out.any() else scores.cpu()
    least = torch.topk(allowed, min(selection.k, len(rows)), sorted=False).values.min() if len(rows) else 0
    at = np.flatnonzero(((allowed >= least) & (allowed > -torch.inf)).numpy())
    best = allowed.numpy()[at]
    order = np.lexsort((rows[at], -best))[: selection.k]  # of equal scores the lower row: pages must not overlap
    return Found(rows[at][order], best[order], len(rows))
