"""Metrics of lists against cases worked by hand and naive loops; where metrics coincide, they do."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import polars as pl
import pytest
import torch

from felrec.baselines.popularity import Popularity
from felrec.data.events import Events
from felrec.data.split import split_log
from felrec.data.synthetic import synthetic_log
from felrec.data.tags import TaggedItems
from felrec.errors import ConfigError
from felrec.evaluation.lists import by_user, diversity, list_metrics, top_items
from felrec.evaluation.metrics import metric_at, read_cutoffs
from felrec.evaluation.protocols import replay, walk

LOG = synthetic_log(2_000, n_users=50, n_items=60, seed=5).log


def test_lists_are_a_stable_sort_by_score() -> None:
    scores = torch.randint(0, 4, (40, 30), generator=torch.Generator().manual_seed(1)).float()
    scores[:, ::7] = math.nan
    scores[::2, 3] = -math.inf
    candidates = np.arange(100, 130, dtype=np.int32)
    for k in (1, 5, 29, 40):
        for row, got in zip(scores.tolist(), top_items(scores, candidates, k).tolist(), strict=True):
            ranked = sorted((-score, 100 + at) for at, score in enumerate(row) if score > -math.inf)
            assert got == ([item for _, item in ranked] + [-1] * k)[:k]


def test_a_user_is_judged_by_the_list_of_the_first_event_against_all_the_items_taken() -> None:
    """Ann takes 1, 3 and 3 again; her first list is 1, 2, 3. Bob takes 9, which is not in his list."""
    events = Events.of([0, 1, 0, 0], [1, 9, 3, 3], [0, 1, 2, 3])
    lists = np.array([[1, 2, 3], [1, 2, -1], [7, 8, 9], [7, 8, 9]], dtype=np.int32)
    got = by_user(lists, events)
    assert got["user_recall"] == pytest.approx((1 + 0) / 2)
    assert got["user_precision"] == pytest.approx((2 / 3 + 0) / 2)
    assert got["user_map"] == pytest.approx(((1 + 2 / 3) / 2 + 0) / 2)
    ideal = 1 + 1 / math.log2(3)
    assert got["user_ndcg"] == pytest.approx(((1 + 1 / math.log2(4)) / ideal + 0) / 2)


def test_recall_is_of_all_relevant_items_but_the_ideal_list_has_only_k() -> None:
    events = Events.of([0, 0, 0], [1, 2, 3], [0, 1, 2])
    got = by_user(np.array([[1], [5], [5]], dtype=np.int32), events)
    assert got == {"user_recall": pytest.approx(1 / 3), "user_precision": 1, "user_map": 1, "user_ndcg": 1}


def test_diversity_matches_a_loop_over_pairs() -> None:
    tags = {0: {1, 2}, 1: {1}, 2: {3}, 3: {1, 2, 3}, 4: {9}}
    pairs = [(item, tag) for item, several in tags.items() for tag in several]
    tagged = TaggedItems(np.array([i for i, _ in pairs], dtype=np.int32), np.array([t for _, t in pairs]))
    lists = np.array([[0, 1, 2, 3], [3, 4, 77, -1], [4, 77, -1, -1], [1, 0, -1, -1]], dtype=np.int32)
    expected = []
    for row in lists.tolist():
        known = [tags[item] for item in row if item in tags]
        if len(known) > 1:
            cosines = [len(a & b) / math.sqrt(len(a) * len(b)) for a, b in combinations(known, 2)]
            expected.append(1 - sum(cosines) / len(cosines))
    assert len(expected) == 3
    assert diversity(lists, tagged) == pytest.approx(sum(expected) / 3)
    assert math.isnan(diversity(lists[2:3], tagged))


def test_an_evaluation_has_the_lists_of_its_ranking() -> None:
    """With items left out too: the target of an event is in the list exactly if its rank is below k."""
    start, stop = 600, 1_300
    for exclude_seen in (False, True):
        model = Popularity()
        replay(model, LOG.events[:start])
        got = walk(model, LOG.events, start, stop, exclude_seen=exclude_seen, list_length=60)
        listed = got.lists == LOG.items[start:stop, None]
        assert (listed.any(axis=1) == ~got.first).all()
        place, known = listed.argmax(axis=1), ~got.first
        assert (np.abs(place - got.rank)[known] <= 30).all()  # ties: by row in the list, half in the rank
        assert (place == got.rank)[known].mean() > 0.2
        assert got.catalogue == len(set(LOG.items[: start + 256 * ((stop - start - 1) // 256)].tolist()))
        assert ((got.lists >= 0).sum(axis=1) == got.candidates).all()


def test_coverage_and_gini_count_the_items_that_were_never_shown() -> None:
    events, earlier = Events.of([0, 1], [0, 1], [0, 1]), Events.of([0] * 4, [0, 1, 2, 3], range(4))
    got = list_metrics(np.array([[0, 1], [0, 2]], dtype=np.int32), events, earlier, 4, [1, 2], None)
    assert got["coverage@1"] == 0.25
    assert got["coverage@2"] == 0.75
    assert got["gini@1"] == pytest.approx(0.75)
    assert got["gini@2"] == pytest.approx(0.375)
    assert got["novelty@2"] == pytest.approx(2)
    assert not any(name.startswith("diversity") for name in got)


def test_which_metrics_of_an_event_coincide() -> None:
    rank = np.array([0.0, 4.0, 4.5, 5.0, np.nan])
    missed = np.isnan(rank)

    def at(name: str) -> list[float]:
        found = metric_at(name, rank, missed)
        assert found is not None
        return found.tolist()  # type: ignore[no-any-return]

    assert at("recall@5") == at("hr@5") == [1, 1, 1, 0, 0]
    assert at("precision@5") == [0.2, 0.2, 0.2, 0, 0]
    assert at("map@5") == at("mrr@5") == [1, 1 / 5, 1 / 5.5, 0, 0]
    assert at("ndcg@5") == pytest.approx([1, 1 / math.log2(6), 1 / math.log2(6.5), 0, 0])
    for name in ("recall", "recall@0", "recall@x", "f1@5"):
        assert metric_at(name, rank, missed) is None


@pytest.mark.parametrize("text", ["", "0", "5,", "ten", "-1", "5.5", "1001"])
def test_cut_offs_that_are_not(text: str) -> None:
    with pytest.raises(ConfigError, match="--k"):
        read_cutoffs(text)


def test_a_report_has_all_of_them_in_one_frame() -> None:
    import felrec

    split = split_log(LOG)
    tags = {item: ["even" if item % 2 == 0 else "odd"] for item in LOG.item_ids.ids(range(LOG.n_items))}
    report = felrec.evaluate(felrec.fit(split, "popularity"), split, k=[20, 5], tags=tags)
    assert report.k == (5, 20)
    assert report.metric("recall@10") == report.metric("hr@10")
    assert report.metric("ndcg@10", "new_items") == pytest.approx(report.partitions["new_items"]["ndcg@10"])
    assert 0 < report.metric("user_recall@5") < report.metric("user_recall@20") <= 1
    assert 0.3 < report.metric("diversity@20") < 0.7
    frame = report.to_frame()
    assert frame["partition"].to_list() == list(report.partitions)
    total = frame.row(by_predicate=pl.col("partition") == "total", named=True)
    assert total["coverage@5"] == report.metric("coverage@5")
    assert total["map@20"] == report.metric("map@20")
    assert frame["coverage@5"].null_count() == 4
    with pytest.raises(ConfigError, match=r"coverage@7.*coverage@5"):
        report.metric("coverage@7")
    with pytest.raises(ConfigError, match=r"'coverage@5'; use one of rank, .*, ndcg@k$"):
        report.metric("coverage@5", "new_items")
    lines = repr(report).splitlines()
    assert lines[0].startswith("popularity: protocol online, ")
    assert [line.split()[0] for line in lines[-13:]] == [
        *("metric", "recall", "precision", "map", "ndcg", "user_recall", "user_precision", "user_map", "user_ndcg"),
        *("coverage", "gini", "novelty", "diversity"),
    ]
    assert len(repr(felrec.evaluate(felrec.fit(split, "popularity"), split)).splitlines()) == 6
