"""Ranks and ranking metrics. Ties count as half, so that a constant score gains nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from felrec.data.hashing import splitmix64
from felrec.errors import ConfigError

Floats = NDArray[np.float64]
METRICS = ("rank", "hr@10_sampled", "hr@10", "ndcg@10", "mrr")
AT_K = ("recall", "precision", "map", "ndcg")  # of an event, from the rank of its one target
SAMPLED_NEGATIVES = 100
LONGEST_LIST = 1_000
_AT_ONCE = 1 << 18  # scores compared at a time on a CPU, so that the results stay in its cache


def ranks(scores: Tensor, targets: Tensor) -> tuple[Floats, Floats]:
    """Rank of column `targets[i]` in each row of scores (B, C), 0 best, and the number of items ranked.

    r = #better + (#equal - 1) / 2. An item whose score is NaN is not ranked.

    >>> ranks(torch.tensor([[3.0, 1.0, 3.0, float("nan")]]), torch.tensor([0]))
    (array([0.5]), array([3.]))
    """
    target = scores.gather(1, targets[:, None])  # (B, 1)
    counts = torch.empty(3, len(scores), dtype=torch.float64, device=scores.device)
    rows = max(1, _AT_ONCE // max(1, scores.shape[1])) if scores.device.type == "cpu" else len(scores)
    for start in range(0, len(scores), max(1, rows)):
        part, goal = scores[start : start + rows], target[start : start + rows]
        counts[0, start : start + rows] = (part > goal).sum(dim=1)
        counts[1, start : start + rows] = (part == goal).sum(dim=1)
        counts[2, start : start + rows] = (part == part).sum(dim=1)  # not NaN
    better, equal, ranked = counts.cpu().numpy()
    return better + (equal - 1) / 2, ranked


def sampled_ranks(scores: Tensor, targets: Tensor, ranked: Floats, events: NDArray[np.int64], seed: int) -> Floats:
    """Rank of the target among 100 other ranked items, drawn with replacement.

    A draw depends on the seed, the event and the excluded items, not on scores, so all models get the same negatives.
    """
    draws = torch.from_numpy(draw_negatives(events, ranked - 1, seed)).to(scores.device)
    if (ranked == scores.shape[1]).all():
        columns = draws + (draws >= targets[:, None])  # skip the target
    else:
        others = ~scores.isnan()
        others.scatter_(1, targets[:, None], False)
        upto = others.cumsum(dim=1, dtype=torch.int32)  # (B, C) number of other items up to each column
        columns = torch.searchsorted(upto, draws.int() + 1)
    negatives = scores.gather(1, columns.clamp_(max=scores.shape[1] - 1))
    target = scores.gather(1, targets[:, None])
    rank = (negatives > target).sum(dim=1).double() + (negatives == target).sum(dim=1).double() / 2
    return np.where(ranked > 1, rank.cpu().numpy(), 0.0)  # a target alone in the catalogue is always a hit


def draw_negatives(events: NDArray[np.int64], others: Floats, seed: int) -> NDArray[np.int64]:
    """Random numbers (B, 100) below `others` (B,), from a hash of seed, event and position."""
    draw = np.arange(SAMPLED_NEGATIVES).astype(np.uint64)
    numbers = np.add.outer(events.astype(np.uint64) * np.uint64(SAMPLED_NEGATIVES), draw)
    with np.errstate(over="ignore"):
        numbers += np.uint64(seed) * np.uint64(0xD1342543DE82EF95)
    drawn: NDArray[np.int64] = (splitmix64(numbers) % np.maximum(1, others).astype(np.uint64)[:, None]).astype(np.int64)
    return drawn


def event_metrics(rank: Floats, ranked: Floats, sampled_rank: Floats, missed: NDArray[np.bool_]) -> dict[str, Floats]:
    """Per event: normalised rank, hit rates, NDCG and reciprocal rank; a miss gets the worst value of each."""
    return {
        "rank": np.where(missed, 1.0, rank / np.maximum(1, ranked - 1)),
        "hr@10_sampled": np.where(missed, 0.0, sampled_rank < 10),
        "hr@10": np.where(missed, 0.0, rank < 10),
        "ndcg@10": np.where(missed | (rank >= 10), 0.0, 1 / np.log2(rank + 2)),
        "mrr": np.where(missed, 0.0, 1 / (rank + 1)),
    }


def read_cutoffs(text: str) -> tuple[int, ...]:
    """Parse lengths of lists separated by commas.

    >>> read_cutoffs("50, 5,10")
    (5, 10, 50)
    """
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() and 1 <= int(word) <= LONGEST_LIST for word in words):
        raise ConfigError(f"--k {text}: give numbers from 1 to {LONGEST_LIST}, separated by commas, as in --k 5,10,50")
    return tuple(sorted({int(word) for word in words}))


def metric_at(name: str, rank: Floats, missed: NDArray[np.bool_]) -> Floats | None:
    """A metric with any cut-off per event, such as `recall@5`; None if there is no metric of this name.

    An event has one relevant item, its target. So recall is the hit rate, precision is recall / k, and the average
    precision is the reciprocal rank, cut at k.

    >>> metric_at("map@5", np.array([0.0, 3.0, 5.0]), np.zeros(3, dtype=bool)).tolist()
    [1.0, 0.25, 0.0]
    """
    kind, _, cut = name.partition("@")
    if not cut.isdecimal() or not int(cut):
        return None
    k = int(cut)
    hit = ~missed & (rank < k)
    place = np.where(hit, rank, 0.0)  # the rank of a miss may be NaN
    if kind in ("recall", "hr"):
        return hit.astype(np.float64)
    if kind == "precision":
        return hit / k
    if kind in ("map", "mrr"):
        return np.where(hit, 1 / (place + 1), 0.0)
    return np.where(hit, 1 / np.log2(place + 2), 0.0) if kind == "ndcg" else None


def average(metrics: dict[str, Floats], chosen: NDArray[np.bool_]) -> dict[str, Any] | None:
    """Number and share of the chosen events and the mean of each metric over them; None if there are none."""
    events = int(chosen.sum())
    if events == 0:
        return None
    means = {name: float(values[chosen].mean()) for name, values in metrics.items()}
    return {"events": events, "share": events / len(chosen), **means}
