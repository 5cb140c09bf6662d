"""How many similar items share a tag: `python benchmarks/similar_items.py LOG TAGS [--newest N]`.

TAGS is a table of items and their tags, such as genres or commodities. For items of each size, the mean overlap of the
tags of an item and of its ten most similar ones (Jaccard; with one tag per item, the share with the same tag).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from felrec.baselines.item_knn import ItemKNN
from felrec.data.events import Rows
from felrec.data.log import InteractionLog
from felrec.data.reading.sources import read_log
from felrec.data.tags import read_tags
from felrec.evaluation.protocols import replay
from felrec.model.felrec_s import FELRecSWithVectors
from felrec.pretrained import load_pretrained

K = 10
SIZES = ((1, 5), (5, 20), (20, 100), (100, None))  # events of an item
ITEMS = 400  # of each size, at most

Similar = Callable[[int], Rows]


def ways(log: InteractionLog, rng: np.random.Generator) -> dict[str, Similar]:
    """What finds similar items, by name."""
    model, knn = load_pretrained().recommender, ItemKNN()
    assert isinstance(model, FELRecSWithVectors)
    replay(model, log.events)
    replay(knn, log.events)
    every = np.arange(log.n_items, dtype=np.int32)
    vectors = model.item_vectors(every).numpy()

    def counted(item: int) -> Rows:
        linked = model.linked_items(item)
        return every[:0] if linked is None else linked.rows[:K]

    def by_knn(item: int) -> Rows:
        found = knn._neighbours(np.array([item], dtype=np.int32), every)
        order = np.argsort(-np.where(found.columns == item, -1, found.similarity), kind="stable")
        return every[found.columns[order]][: min(K, len(order) - 1)] if len(order) else every[:0]

    def by_vectors(item: int) -> Rows:
        cosines = vectors @ vectors[item]
        cosines[item] = -1
        return every[np.argsort(-cosines, kind="stable")[:K]]

    return {
        "counted together": counted,
        "item-kNN": by_knn,
        "cosine of counted vectors": by_vectors,
        "random": lambda item: rng.choice(every, K, replace=False),
    }


def overlap(tags: NDArray[np.bool_], item: int, others: Rows) -> float:
    """The mean Jaccard index of the tags of an item and of others that have tags; NaN without any."""
    others = others[tags[others].any(axis=1)]
    if not len(others):
        return float("nan")
    both, either = tags[others] & tags[item], tags[others] | tags[item]
    return float((both.sum(axis=1) / either.sum(axis=1)).mean())


def main() -> None:
    """Print one row per way to find similar items."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log")
    parser.add_argument("tags")
    parser.add_argument("--newest", type=int)
    given = parser.parse_args()
    log, rng = read_log(given.log, newest=given.newest), np.random.default_rng(0)
    tagged = read_tags(given.tags).of(log.item_ids)
    tags = np.zeros((log.n_items, int(tagged.tags.max()) + 1), dtype=bool)
    tags[tagged.items, tagged.tags] = True
    events = np.bincount(log.items, minlength=log.n_items)
    sizes = [tags.any(axis=1) & (events >= low) & (events < (high or np.inf)) for low, high in SIZES]
    asked = [rng.permutation(np.flatnonzero(size))[:ITEMS] for size in sizes]
    print("events of the item:", *(f"{low}–{high - 1}" if high else f"{low} or more" for low, high in SIZES), sep="\t")
    for name, similar in ways(log, rng).items():
        means = [np.nanmean([overlap(tags, item, similar(item)) for item in items.tolist()]) for items in asked]
        print(name, *(f"{mean:.3f}" for mean in means), sep="\t")


if __name__ == "__main__":
    main()
