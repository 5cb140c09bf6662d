"""Metrics of recommended lists: what the best k items of each query say about all of them, and about each user.

A list is a row of items (K,), best first, padded with −1. They can come from scores (`top_items`) or from a model that
finds its best items itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from felrec.data.events import Events, Rows
from felrec.data.lazy_polars import pl
from felrec.data.tags import TaggedItems

Lists = NDArray[np.int32]  # (B, K) items, best first, −1 where there are fewer than K
BY_USER = ("user_recall", "user_precision", "user_map", "user_ndcg")
OF_LISTS = ("coverage", "gini", "novelty", "diversity")


def top_items(scores: Tensor, candidates: Rows, k: int) -> Lists:
    """The k best candidates (B, k) by scores (B, C), equal ones in the order of their rows, never NaN or −inf.

    >>> top_items(torch.tensor([[1.0, 2.0, 2.0, float("nan")]]), np.array([4, 5, 6, 7], dtype=np.int32), 5).tolist()
    [[5, 6, 4, -1, -1]]
    """
    lists = np.full((len(scores), k), -1, dtype=np.int32)
    if not (found := min(k, scores.shape[1])):
        return lists
    scores = torch.where(scores.isnan(), -torch.inf, scores)
    best = scores.topk(found, dim=1)
    columns = best.indices.sort(dim=1).values
    # topk leaves open which of several equal scores it takes, so rows where that matters are cut again.
    least = best.values[:, -1:]
    cut = ((scores >= least).sum(dim=1) > found).nonzero()[:, 0]
    columns[cut] = _first_of_equals(scores[cut], least[cut], found)
    ordered = scores.gather(1, columns).sort(dim=1, descending=True, stable=True)
    items = candidates[columns.gather(1, ordered.indices).cpu().numpy()]
    lists[:, :found] = np.where((ordered.values > -torch.inf).cpu().numpy(), items, -1)
    return lists


def _first_of_equals(scores: Tensor, least: Tensor, found: int) -> Tensor:
    """The columns (B, found) of all scores above `least` (B, 1), and of the first that are equal to it, ascending."""
    better, equal = scores > least, scores == least
    wanted = better | (equal & (equal.cumsum(dim=1) <= found - better.sum(dim=1, keepdim=True)))
    return wanted.nonzero()[:, 1].reshape(len(scores), found)


def list_metrics(
    lists: Lists, events: Events, earlier: Events, catalogue: int, cutoffs: Sequence[int], tagged: TaggedItems | None
) -> dict[str, float]:
    """Every metric of lists, as `name@k`; diversity only where items have tags.

    `events` are those that the lists were made for, `earlier` all before them, and `catalogue` is the number of items
    that could be recommended.
    """
    found: dict[str, float] = {}
    for k in cutoffs:
        cut = lists[:, :k]
        shown = np.bincount(cut[cut >= 0], minlength=catalogue)
        counts = np.sort(shown)[::-1][:catalogue]  # the items of the catalogue, whatever their rows
        values = {
            **by_user(cut, events),
            "coverage": coverage(counts),
            "gini": gini(counts),
            "novelty": novelty(cut, earlier.items),
        }
        if tagged is not None:
            values["diversity"] = diversity(cut, tagged)
        found |= {f"{name}@{k}": value for name, value in values.items()}
    return found


def by_user(lists: Lists, events: Events) -> dict[str, float]:
    """Recall, precision, average precision and NDCG of the list at each user's first event, as means over users.

    Relevant are all the different items of the user's events.
    """
    users, first = np.unique(events.users, return_index=True)
    keys = np.unique(events.users.astype(np.int64) << 32 | events.items)
    relevant = np.bincount(np.searchsorted(users, keys >> 32), minlength=len(users))  # (U,)
    theirs = lists[first]  # (U, k)
    hits = np.isin(users[:, None].astype(np.int64) << 32 | theirs.astype(np.int64), keys) & (theirs >= 0)
    k = lists.shape[1]
    places = np.arange(1, k + 1)
    precision_at = np.cumsum(hits, axis=1) / places
    gains = 1 / np.log2(places + 1)
    most = np.minimum(relevant, k)
    return {
        "user_recall": float((hits.sum(axis=1) / relevant).mean()),
        "user_precision": float((hits.sum(axis=1) / k).mean()),
        "user_map": float(((precision_at * hits).sum(axis=1) / most).mean()),
        "user_ndcg": float((hits @ gains / np.cumsum(gains)[most - 1]).mean()),
    }


def coverage(counts: NDArray[np.int64]) -> float:
    """Share of the items that were recommended at least once.

    >>> coverage(np.array([3, 0, 1, 0]))
    0.5
    """
    return float((counts > 0).mean()) if len(counts) else 0.0


def gini(counts: NDArray[np.int64]) -> float:
    """Gini coefficient: 0 if all items are recommended equally often, near 1 if one gets all.

    >>> gini(np.array([5, 5, 5, 5])), gini(np.array([0, 0, 0, 8]))
    (0.0, 0.75)
    """
    n, total = len(counts), counts.sum()
    if total == 0:
        return 0.0
    places = np.arange(1, n + 1)
    return float(2 * (places @ np.sort(counts)) / (n * total) - (n + 1) / n)


def novelty(lists: Lists, earlier: Rows) -> float:
    """Mean self-information of the recommended items in bits: −log2 of their share of earlier events.

    An item without an earlier event counts as one with a single event.

    >>> novelty(np.array([[0, 1], [0, -1]], dtype=np.int32), np.array([0, 0, 0, 1], dtype=np.int32)).__round__(3)
    0.943
    """
    items = lists[lists >= 0]
    if not len(items) or not len(earlier):
        return float("nan")
    counts = np.bincount(earlier, minlength=int(items.max()) + 1)
    return float(-np.log2(np.maximum(1, counts[items]) / len(earlier)).mean())


def diversity(lists: Lists, tagged: TaggedItems) -> float:
    """One minus the mean cosine of the tags of two items of a list, over the lists with two tagged items or more.

    The cosine of two sets of tags is |A ∩ B| / √(|A| |B|). Its sum over all pairs follows from the sum of the items'
    unit vectors of tags, so no pair is looked at: Σ over pairs = (|Σ v|² − n) / 2.

    >>> tagged = TaggedItems(np.array([0, 1, 2], dtype=np.int32), np.array([7, 7, 8]))  # 0 and 1 share their tag
    >>> diversity(np.array([[0, 1, 2]], dtype=np.int32), tagged).__round__(3)
    0.667
    """
    pairs = pl.DataFrame({"item": tagged.items, "tag": tagged.tags})
    pairs = pairs.with_columns(weight=1 / pl.len().over("item").sqrt(), first=pl.col("item").is_first_distinct())
    at, place = np.nonzero(lists >= 0)
    slots = pl.DataFrame({"list": at.astype(np.int32), "item": lists[at, place]}).join(pairs, on="item")
    lengths = slots.group_by("list").agg(items=pl.col("first").sum().cast(pl.Int64))
    squares = slots.group_by("list", "tag").agg(pl.col("weight").sum() ** 2)
    sums = squares.group_by("list").agg(pl.col("weight").sum()).join(lengths, on="list").filter(pl.col("items") > 1)
    cosine = (pl.col("weight") - pl.col("items")) / (pl.col("items") * (pl.col("items") - 1))
    mean = sums.select((1 - cosine).mean()).item()
    return float("nan") if mean is None else float(mean)
