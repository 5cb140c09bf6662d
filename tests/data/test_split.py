from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

from felrec.data.log import InteractionLog
from felrec.data.split import PARTITIONS, split_log
from felrec.data.summary import inspect
from felrec.data.synthetic import synthetic_log
from felrec.errors import DataError


def log_of(users: list[int], items: list[int]) -> InteractionLog:
    return InteractionLog.from_frame(pl.DataFrame({"user": users, "item": items, "timestamp": range(len(users))}))


def test_sizes_round_down() -> None:
    parts = split_log(synthetic_log(1_019).log)
    assert (len(parts.train), len(parts.validation), len(parts.test)) == (817, 101, 101)
    whole = np.concatenate([parts.train.times, parts.validation.times, parts.test.times])
    assert whole.tolist() == parts.log.times.tolist()


def test_partitions_are_relative_to_train() -> None:
    #            train 0..7                       | validation, test
    parts = split_log(log_of([1, 2, 1, 2, 1, 2, 1, 2, 3, 3], [1, 2, 1, 2, 1, 2, 1, 2, 9, 1]))
    assert parts.partition(0, 8).tolist() == [0] * 8
    # A new item counts as one whoever the user; the user of validation is still new in test.
    assert [PARTITIONS[code] for code in parts.partition(8, 10)] == ["new_items", "new_users"]
    known_user = split_log(log_of([1, 2, 1, 2, 1, 2, 1, 2, 1, 2], [1, 2, 1, 2, 1, 2, 1, 2, 9, 1]))
    assert known_user.partition(8, 10).tolist() == [2, 0]


def test_partitions_against_sets() -> None:
    log = synthetic_log(3_000, seed=4).log
    parts = split_log(log)
    users, items = set(parts.train.users.tolist()), set(parts.train.items.tolist())
    pairs = zip(parts.test.users.tolist(), parts.test.items.tolist(), strict=True)
    expected = [2 if item not in items else 1 if user not in users else 0 for user, item in pairs]
    assert parts.partition(parts.validation_end, len(log)).tolist() == expected
    assert set(expected) == {0, 1, 2}


def test_repeat_share_looks_at_the_whole_past() -> None:
    # Validation events 8 and 9 of ten in each part: one repeats an event of train, one repeats nothing.
    users = [1, 2] * 8 + [1, 2] + [1, 2]
    items = [1, 2] * 8 + [1, 3] + [5, 6]
    assert split_log(log_of(users, items)).repeat_share() == 0.5


@pytest.mark.parametrize("n", [2, 9])
def test_a_short_log_cannot_be_split(n: int) -> None:
    with pytest.raises(DataError, match=f"a log of {n} events is too short to split"):
        split_log(log_of(list(range(n)), list(range(n))))


def test_shares_that_leave_no_train_part_are_refused() -> None:
    with pytest.raises(DataError, match="leave at least one event for each part"):
        split_log(log_of(list(range(20)), list(range(20))), validation=0.5, test=0.5)


def test_a_share_of_nothing_is_refused_by_its_name() -> None:
    with pytest.raises(DataError, match=r"test=0\.0: 20 events give"):
        split_log(log_of(list(range(20)), list(range(20))), test=0.0)


def test_inspect_by_hand() -> None:
    users = [1, 2] * 8 + [1, 2] + [1, 7]
    items = [1, 2] * 8 + [1, 3] + [5, 1]
    frame = pl.DataFrame({"user": users, "item": items, "timestamp": [0, 0, *range(86_400 * 2 - 18, 86_400 * 2)]})
    about = inspect(InteractionLog.from_frame(frame))
    assert (about["rows"], about["users"], about["items"]) == (20, 3, 4)
    assert (about["first"], about["last"]) == ("1970-01-01T00:00:00+00:00", "1970-01-02T23:59:59+00:00")
    assert about["span_days"] == pytest.approx(2, abs=1e-4)
    assert about["user_history"] == {"median": 9.0, "90%": pytest.approx(9.8), "max": 10}
    assert about["item_history"]["max"] == 10
    assert about["repeated_pairs"] == 15 / 20
    assert about["ties"] == 1 / 19
    assert about["test_partitions"] == {"observed": 0.0, "new_users": 0.5, "new_items": 0.5}


# Of the table in the README beside the logs.
REAL = [
    ("ml-100k", 100_000, 943, 1_682, (0.134, 0.851, 0.015)),
    ("movietweetings", 141_695, 21_081, 12_611, (0.665, 0.179, 0.156)),
    ("jodie_wikipedia", 157_474, 8_227, 1_000, (0.795, 0.102, 0.103)),
    ("tafeng", 817_741, 32_266, 23_812, (0.830, 0.146, 0.024)),
    ("globo", 2_988_181, 322_897, 46_033, (0.175, 0.037, 0.788)),
]


@pytest.mark.realdata
@pytest.mark.parametrize(("name", "rows", "users", "items", "shares"), REAL)
def test_real_logs_are_as_described(
    real_log: Callable[[str], InteractionLog],
    name: str, rows: int, users: int, items: int, shares: tuple[float, float, float],
) -> None:  # fmt: skip
    about = inspect(real_log(name))
    assert (about["rows"], about["users"], about["items"]) == (rows, users, items)
    assert tuple(about["test_partitions"].values()) == pytest.approx(shares, abs=6e-4)


@pytest.mark.realdata
def test_milliseconds_of_globo_are_recognised(real_log: Callable[[str], InteractionLog]) -> None:
    assert inspect(real_log("globo"))["first"].startswith("2017-")
