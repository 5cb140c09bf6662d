"""The protocols against a naive evaluation, event by event, of a recommender that keeps a diary."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from torch import Tensor

from felrec.baselines.popularity import Popularity
from felrec.data.events import Events, Rows
from felrec.data.log import InteractionLog
from felrec.data.split import Split, split_log
from felrec.data.synthetic import synthetic_log
from felrec.errors import ConfigError, TrainingError
from felrec.evaluation import protocols
from felrec.evaluation.metrics import sampled_ranks
from felrec.evaluation.protocols import Enough, replay, walk
from felrec.evaluation.report import evaluate
from felrec.evaluation.rules import BLOCK
from felrec.evaluation.seen import SeenItems
from felrec.recommender import Queries

LOG = synthetic_log(3_000, n_users=60, n_items=80, seed=3).log


class Diary(Popularity):
    """Popularity that writes down what it was asked and shown."""

    def __init__(self) -> None:
        super().__init__()
        self.pages: list[tuple[str, Any]] = []

    def score(self, queries: Queries, candidates: Rows) -> Tensor:
        self.pages.append(("score", (queries, candidates)))
        return super().score(queries, candidates)

    def observe(self, block: Events) -> None:
        self.pages.append(("observe", block))
        super().observe(block)


def test_online_scores_a_block_before_it_is_observed() -> None:
    diary = Diary()
    walk(diary, LOG.events, 2_000, 3_000)
    assert [kind for kind, _ in diary.pages] == ["score", "observe"] * 4
    sizes = [len(content[0]) for kind, content in diary.pages if kind == "score"]
    assert sizes == [256, 256, 256, 232]


def test_the_catalogue_is_what_was_seen_before_the_block() -> None:
    diary = Diary()
    walk(diary, LOG.events, 1_000, 2_000)
    for page, (kind, content) in enumerate(diary.pages):
        if kind == "score":
            begin = 1_000 + 256 * (page // 2)
            assert content[1].tolist() == sorted(set(LOG.items[:begin].tolist()))


def test_queries_hold_the_users_own_earlier_events_of_the_block_and_no_target() -> None:
    diary = Diary()
    walk(diary, LOG.events, 1_000, 1_256)
    queries = diary.pages[0][1][0]
    for i in range(256):
        own = [int(LOG.items[1_000 + j]) for j in range(i) if LOG.users[1_000 + j] == LOG.users[1_000 + i]]
        assert queries.pending.values[queries.pending.starts[i] : queries.pending.stops[i]].tolist() == own


@pytest.mark.parametrize("exclude_seen", [False, True])
@pytest.mark.parametrize("since", [0, 500])
def test_ranks_match_a_naive_evaluation(exclude_seen: bool, since: int) -> None:
    start, stop = 600, 1_300
    model = Popularity()
    replay(model, LOG.events[since:start])
    got = walk(model, LOG.events, start, stop, since=since, exclude_seen=exclude_seen)
    for e in range(start, stop):
        begin = start + (e - start) // 256 * 256
        items, target = LOG.items[since:begin].tolist(), int(LOG.items[e])
        had = {int(i) for u, i in zip(LOG.users[since:e], LOG.items[since:e], strict=True) if u == LOG.users[e]}
        shown = [i for i in set(items) if not exclude_seen or i == target or i not in had]
        assert got.first[e - start] == (target not in items)
        assert got.item_events[e - start] == LOG.items[since:e].tolist().count(target)
        if target not in items:
            assert got.metrics["rank"][e - start] == 1
            assert got.metrics["mrr"][e - start] == 0
            continue
        count = {i: items.count(i) for i in shown}
        better = sum(c > count[target] for c in count.values())
        equal = sum(c == count[target] for c in count.values())
        assert got.rank[e - start] == better + (equal - 1) / 2
        assert got.candidates[e - start] == len(shown)


def test_the_published_order_observes_first_and_includes_the_targets() -> None:
    got = walk(Popularity(), LOG.events, 0, 2_000, protocol="paper")
    assert not got.first.any()
    first_batch = np.bincount(LOG.items[: BLOCK["paper"]])
    target = first_batch[LOG.items[0]]
    shown = first_batch[first_batch > 0]
    assert got.rank[0] == (shown > target).sum() + ((shown == target).sum() - 1) / 2


def test_an_empty_start_makes_the_first_block_a_miss() -> None:
    got = walk(Popularity(), LOG.events, 0, 300)
    assert got.first[:256].all()
    assert (got.metrics["hr@10"][:256] == 0).all()


class Broken(Popularity):
    """What a network with damaged weights would answer."""

    def score(self, queries: Queries, candidates: Rows) -> Tensor:
        return super().score(queries, candidates) * torch.nan


def test_scores_that_are_not_numbers_are_refused() -> None:
    model = Broken()
    replay(model, LOG.events[:1_000])
    with pytest.raises(TrainingError, match="not numbers"):
        walk(model, LOG.events, 1_000, 1_300)


class Halfway(Popularity):
    """Cannot represent new items, like a model with an embedding layer."""

    represents = frozenset({"observed", "new_users"})

    def __init__(self, known: int) -> None:
        super().__init__()
        self.known = known

    def score(self, queries: Queries, candidates: Rows) -> Tensor:
        unknown = torch.from_numpy(candidates >= self.known)
        return super().score(queries, candidates).masked_fill(unknown, -torch.inf)


def cold_split() -> Split:
    parts = split_log(LOG)
    assert (parts.partition(parts.validation_end, len(LOG)) == 2).any()
    return parts


def test_what_a_model_cannot_represent_is_missed_in_total_and_left_out_of_representable() -> None:
    parts = cold_split()
    model = Halfway(int(parts.train.items.max()) + 1)
    report = evaluate(model, parts, model="halfway", cache="reset")
    rows = report.partitions
    cold = rows["new_items"]
    assert cold["rank"] is None
    assert cold["hr@10"] is None
    assert cold["events"] > 0
    assert rows["total"]["events"] == len(parts.test)
    known = rows["observed"]["events"] + rows["new_users"]["events"]
    assert rows["total_representable"]["events"] == known
    hits = sum(rows[name]["hr@10"] * rows[name]["events"] for name in ("observed", "new_users") if rows[name]["events"])
    assert rows["total"]["hr@10"] == pytest.approx(hits / len(parts.test))
    assert rows["total_representable"]["hr@10"] == pytest.approx(hits / known)
    assert sum(rows[name]["share"] for name in ("observed", "new_users", "new_items")) == pytest.approx(1)


def test_the_three_starts_of_the_cache() -> None:
    parts = cold_split()
    reset = evaluate(Popularity(), parts, model="p", cache="reset")
    kept_model = Popularity()
    replay(kept_model, LOG.events[: parts.validation_end])
    kept = evaluate(kept_model, parts, model="p", cache="kept")
    assert (reset.results.rank == kept.results.rank)[~kept.results.first].all()
    empty = evaluate(kept_model, parts, model="p", cache="empty")
    assert empty.first_events > reset.first_events
    assert empty.results.events[0] == parts.validation_end


def test_exclude_seen_auto_follows_the_share_of_repeats() -> None:
    def log(repeat: bool) -> InteractionLog:
        users = np.arange(400) % 20
        items = users if repeat else np.arange(400) // 20 + 100
        return InteractionLog.from_frame(pl.DataFrame({"user": users, "item": items, "timestamp": np.arange(400)}))

    assert evaluate(Popularity(), split_log(log(False)), model="p", cache="reset").exclude_seen is True
    assert evaluate(Popularity(), split_log(log(True)), model="p", cache="reset").exclude_seen is False
    forced = evaluate(Popularity(), split_log(log(True)), model="p", cache="reset", exclude_seen="yes")
    assert forced.exclude_seen is True


def test_per_event_file(tmp_path: Any) -> None:
    parts = cold_split()
    report = evaluate(Popularity(), parts, model="p", cache="reset")
    report.write_events(tmp_path / "events.parquet")
    frame = pl.read_parquet(tmp_path / "events.parquet")
    assert frame.height == len(parts.test)
    assert {"event", "partition", "rank", "hit", "item_events"} <= set(frame.columns)
    assert frame["hit"].mean() == pytest.approx(report.metric("hr@10"))
    assert frame.filter(pl.col("first"))["rank"].is_nan().all()


def test_seen_items_lists_every_earlier_pair() -> None:
    positions, items = SeenItems(LOG.events).before(700, 720)
    for i in range(20):
        expected = [int(it) for u, it in zip(LOG.users[: 700 + i], LOG.items, strict=False) if u == LOG.users[700 + i]]
        assert items[positions == i].tolist() == expected


def test_sampled_negatives_are_drawn_by_the_number_of_the_event(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that no two blocks meet the same draws, wherever an evaluation begins."""
    model, drawn, real = Popularity(), list[int](), sampled_ranks

    def noted(scores: Tensor, targets: Tensor, ranked: Any, events: Any, seed: int) -> Any:
        drawn.extend(events.tolist())
        return real(scores, targets, ranked, events, seed)

    monkeypatch.setattr(protocols, "sampled_ranks", noted)
    replay(model, LOG.events[:600])
    walk(model, LOG.events, 600, 1_300)
    assert drawn == list(range(600, 1_300))


def test_in_total_the_rank_of_what_a_model_cannot_represent_is_the_worst() -> None:
    parts = split_log(LOG)
    rows = evaluate(Halfway(int(parts.train.items.max()) + 1), parts, model="halfway", cache="reset").partitions
    known = rows["total_representable"]
    missed = rows["new_items"]["events"]
    assert missed > 0
    assert rows["total"]["rank"] == pytest.approx((known["rank"] * known["events"] + missed) / len(parts.test))
    assert rows["total"]["mrr"] == pytest.approx(known["mrr"] * known["events"] / len(parts.test))


def test_the_published_evaluation_leaves_nothing_out_unless_told() -> None:
    frame = pl.DataFrame({"user": np.arange(400) % 20, "item": np.arange(400) // 20, "timestamp": np.arange(400)})
    parts = split_log(InteractionLog.from_frame(frame))  # nobody takes anything twice
    for protocol, asked, left_out in (("online", "auto", True), ("paper", "auto", False), ("paper", "yes", True)):
        report = evaluate(Popularity(), parts, model="p", cache="reset", protocol=protocol, exclude_seen=asked)  # type: ignore[arg-type]
        assert report.exclude_seen is left_out, (protocol, asked)


BOTH_AT_ONCE = Events.of([0, 1, 0, 0, 1], [0, 1, 2, 3, 2], [1.0, 2.0, 3.0, 3.0, 4.0])


def test_tgb_ranks_all_items_of_the_log_but_other_targets_of_the_moment() -> None:
    got = walk(Popularity(), BOTH_AT_ONCE, 2, 5, protocol="tgb-blind")
    # nothing was observed: all scores are equal. Events 2 and 3 leave out each other's target: 3 of 4 items are ranked
    assert got.candidates.tolist() == [3, 3, 4]
    assert got.rank.tolist() == [1.0, 1.0, 1.5]
    assert not got.first.any()


def test_in_blind_mode_a_block_of_200_hides_its_events_from_each_other() -> None:
    diary = Diary()
    walk(diary, LOG.events, 1_000, 1_300, protocol="tgb-blind")
    queries = [content[0] for kind, content in diary.pages if kind == "score"]
    assert [len(one) for one in queries] == [200, 100]
    assert not any((one.pending.stops > one.pending.starts).any() for one in queries)


def test_in_visible_mode_an_event_is_scored_after_all_before_it() -> None:
    diary = Diary()
    walk(diary, LOG.events, 1_000, 1_050, protocol="tgb-visible")
    assert [kind for kind, _ in diary.pages] == ["score", "observe"] * 50


def test_successive_predicts_no_event_without_history_and_excludes_seen_items() -> None:
    events = Events.of([0, 1, 0, 2, 2, 1], [0, 1, 1, 0, 1, 0], [0, 1, 2, 3, 4, 5])
    got = walk(Popularity(), events, 2, 6, protocol="successive", exclude_seen=True, block=1)
    assert got.events.tolist() == [2, 4, 5]  # event 3 is the first of user 2
    assert got.candidates.tolist() == [1, 1, 1]  # of two items each user has one


@pytest.mark.parametrize(("protocol", "wrong"), [("tgb-blind", "yes"), ("tgb-visible", "yes"), ("successive", "no")])
def test_a_published_protocol_has_its_own_rule_for_seen_items(protocol: Any, wrong: Any) -> None:
    split = split_log(LOG)
    assert evaluate(Popularity(), split, model="p", protocol=protocol).exclude_seen == (wrong == "no")
    with pytest.raises(ConfigError, match="omit --exclude-seen"):
        evaluate(Popularity(), split, model="p", protocol=protocol, exclude_seen=wrong)


def test_a_report_has_one_partition_for_each_predicted_event() -> None:
    report = evaluate(Popularity(), split_log(LOG), model="p", protocol="successive")
    assert len(report.partition) == len(report.results.events) < 300
    assert report.partitions["total"]["events"] == len(report.results.events)


@pytest.mark.parametrize("protocol", ["online", "successive"])
def test_an_evaluation_that_is_ended_early_is_one_of_fewer_events(protocol: Any) -> None:
    events, counted = synthetic_log(600, n_users=30, n_items=20, seed=8).log.events, 0

    def progress(done: int) -> None:
        nonlocal counted
        counted += done
        if counted >= 100:
            raise Enough

    ended = walk(Popularity(), events, 300, 600, protocol=protocol, block=50, progress=progress)
    whole = walk(Popularity(), events, 300, 400, protocol=protocol, block=50)
    assert (ended.unfinished, whole.unfinished) == (200, 0)
    assert (ended.events == whole.events).all()
    assert all((ended.metrics[name] == values).all() for name, values in whole.metrics.items())
