"""Splits of published benchmarks, against cases worked out by hand."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from felrec.data.log import InteractionLog
from felrec.data.published_splits import split_by
from felrec.data.split import split_log
from felrec.data.synthetic import synthetic_log
from felrec.errors import ConfigError, DataError


def log_of(users: list[Any], items: list[Any], times: list[Any]) -> InteractionLog:
    return InteractionLog.from_frame(pl.DataFrame({"user": users, "item": items, "timestamp": times}))


def test_the_default_is_the_last_two_tenths() -> None:
    log = synthetic_log(1_000, n_users=20, n_items=30, seed=0).log
    assert split_by("last-events", log).fingerprint == split_log(log).fingerprint


def test_tgb_cuts_by_time_and_not_by_number() -> None:
    times = [0.0] * 10 + [1.0] * 5 + [2.0] * 3 + [3.0, 4.0]
    split = split_by("tgb", log_of([0, 1] * 10, [0, 1, 2, 3] * 5, times))
    # the 70 % quantile lies at event 13.3, time 1; the 85 % quantile at event 16.15, time 2
    assert (len(split.train), len(split.validation), len(split.test)) == (15, 3, 2)


def test_time_to_split_keeps_users_and_items_with_five_events() -> None:
    users = ["ann", "bob"] * 10 + ["cat"] * 5
    items = [letter for letter in "ABABABABAB" for _ in users[:2]] + ["A", "B", "A", "B", "rare"]
    kept = split_by("time-to-split", log_of(users, items, list(range(25)))).log
    # "rare" has one event; without it cat has four, so she goes as well
    assert kept.user_ids.series.to_list() == ["ann", "bob"]
    assert kept.item_ids.series.to_list() == ["A", "B"]
    assert len(kept) == 20


def test_time_to_split_drops_repeats_of_the_last_item() -> None:
    users, items = [0, 1] * 20, [i % 4 for i in range(20) for _ in (0, 1)]
    clean = split_by("time-to-split", log_of(users, items, list(range(40)))).log
    doubled = log_of(
        [u for u in users for _ in (0, 1)], [i for i in items for _ in (0, 1)], [t // 2 for t in range(80)]
    )
    again = split_by("time-to-split", doubled).log
    assert again.users.tolist() == clean.users.tolist()
    assert again.items.tolist() == clean.items.tolist()


def test_time_to_split_cuts_at_nine_tenths_of_the_time_and_of_the_time_before() -> None:
    users, items = [0, 1] * 50, [i % 7 for i in range(100)]
    split = split_by("time-to-split", log_of(users, items, list(range(100))))
    # times up to the quantile 89.1, and of those 90 events up to the quantile 80.1
    assert (split.train_end, split.validation_end) == (81, 90)


def test_a_log_that_cannot_be_split_so_is_refused() -> None:
    with pytest.raises(DataError, match="at least 5 events"):
        split_by("time-to-split", log_of([0, 1], [0, 1], [0, 1]))
    with pytest.raises(DataError, match="same time"):
        split_by("tgb", log_of([0, 1] * 10, [0, 1] * 10, [1.0] * 20))
    with pytest.raises(ConfigError, match="choose one of last-events"):
        split_by("leave-one-out", log_of([0, 1], [0, 1], [0, 1]))  # type: ignore[arg-type]
