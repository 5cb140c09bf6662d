"""Ranks by a model that compares each target with all items itself, instead of returning a score of every item."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from felrec.abilities import Comparing
from felrec.data.events import Rows
from felrec.data.pending import Pending
from felrec.errors import TrainingError
from felrec.evaluation.metrics import draw_negatives
from felrec.recommender import Queries

Columns = tuple[NDArray[np.int64], NDArray[np.int64]]  # query and column of some candidates


def compared_ranks(
    recommender: Comparing,
    queries: Queries,
    candidates: Rows,
    targets: NDArray[np.int64],
    left_out: Columns | None,
    events: NDArray[np.int64],
    seed: int,
) -> dict[str, NDArray[np.generic]] | None:
    """What `ranks` and `sampled_ranks` find for target columns (B,); None if the recommender cannot compare here."""
    without = _lists(left_out, len(queries), len(candidates))
    ranked = (len(candidates) - (without.stops - without.starts)).astype(np.float64)
    negatives = nth_others(draw_negatives(events, ranked - 1, seed), targets, without, len(candidates))
    rows_without = Pending(candidates[without.values], without.starts, without.stops)
    found = recommender.compare(queries, candidates, candidates[targets], rows_without, candidates[negatives])
    if found is None:
        return None
    require_numbers(found.target)
    goals = found.target[:, None]
    sampled = (found.others > goals).sum(axis=1) + (found.others == goals).sum(axis=1) / 2
    return {
        "rank": found.better + (found.equal - 1) / 2,
        "ranked": ranked,
        "sampled": np.where(ranked > 1, sampled, 0.0),
    }


def nth_others(
    numbers: NDArray[np.int64], targets: NDArray[np.int64], left_out: Pending, candidates: int
) -> NDArray[np.int64]:
    """Columns of the n-th candidates (B, S) apart from the target (B,) and those left out.

    >>> nth_others(np.array([[0, 1, 2]]), np.array([1]), Pending.of([[2, 4]]), 6).tolist()
    [[0, 3, 5]]
    """
    if not len(left_out.values):
        return np.minimum(numbers + (numbers >= targets[:, None]), candidates - 1)
    queries = np.arange(len(targets))
    owners = np.concatenate([np.repeat(queries, left_out.stops - left_out.starts), queries])
    skipped = np.sort(owners * candidates + np.concatenate([left_out.values, targets]))  # by query, ascending
    begins = left_out.starts + queries  # of each query in `skipped`
    owner, column = np.divmod(skipped, candidates)
    others_before = column - (np.arange(len(skipped)) - begins[owner])  # of each skipped column
    after = np.searchsorted(owner * candidates + others_before, queries[:, None] * candidates + numbers, side="right")
    return np.minimum(numbers + after - begins[:, None], candidates - 1)


def require_numbers(scores: NDArray[np.floating]) -> None:
    """An error if a target's score is NaN."""
    if np.isnan(scores).any():
        raise TrainingError("the model's scores are not numbers: damaged weights; train again with a smaller lr")


def _lists(left_out: Columns | None, queries: int, candidates: int) -> Pending:
    """The distinct columns of each query, ascending."""
    if left_out is None:
        return Pending.none(queries)
    owner, column = np.divmod(np.unique(left_out[0] * candidates + left_out[1]), candidates)
    bounds = np.searchsorted(owner, np.arange(queries + 1))
    return Pending(column.astype(np.int32), bounds[:-1], bounds[1:])
