"""Split a log by time into train, validation and test, and find the test events of new users and new items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from felrec.data.events import Events
from felrec.data.lazy_polars import pl
from felrec.data.log import InteractionLog
from felrec.errors import DataError

PARTITIONS = ("observed", "new_users", "new_items")
FEWEST = 10  # events of a log that can be split: one tenth must be at least one event


@dataclass(frozen=True)
class Sizes:
    """Numbers of users and items in the training part and in total, which size an embedding layer."""

    train_users: int
    train_items: int
    users: int
    items: int


@dataclass(frozen=True, eq=False)
class Split:
    """A log and the two places where it is cut."""

    log: InteractionLog
    train_end: int
    validation_end: int

    @property
    def train(self) -> Events:
        """Events before the first cut."""
        return self.log[: self.train_end]

    @property
    def validation(self) -> Events:
        """Events between the cuts."""
        return self.log[self.train_end : self.validation_end]

    @property
    def test(self) -> Events:
        """Events after the second cut."""
        return self.log[self.validation_end :]

    @property
    def fingerprint(self) -> str:
        """The log's fingerprint and the two cuts: a state made on one split must not be tested on another."""
        return f"{self.log.fingerprint}:{self.train_end}:{self.validation_end}"

    @property
    def sizes(self) -> Sizes:
        """Numbers of users and items."""
        train = self.train  # rows are numbered by first appearance, so those of train come first
        return Sizes(int(train.users.max()) + 1, int(train.items.max()) + 1, self.log.n_users, self.log.n_items)

    def bounds(self, part: Literal["validation", "test"]) -> tuple[int, int]:
        """Where a part starts and stops."""
        return (self.train_end, self.validation_end) if part == "validation" else (self.validation_end, len(self.log))

    def partition(self, start: int, stop: int) -> NDArray[np.uint8]:
        """The partition of each event from `start` to `stop`, as an index into `PARTITIONS`.

        As in the paper: `new_items` if the item is not in the training part, else `new_users` if the user is not, else
        `observed`. Rows are numbered by first appearance, so those of train are a prefix.
        """
        window = self.log[start:stop]
        new_user = window.users > self.train.users.max()
        new_item = window.items > self.train.items.max()
        return np.where(new_item, 2, np.where(new_user, 1, 0)).astype(np.uint8)

    def repeat_share(self) -> float:
        """Share of validation events whose user had taken the item before."""
        return float(repeats(self.log, self.validation_end)[self.train_end :].mean())


def split_log(log: InteractionLog, validation: float = 0.1, test: float = 0.1) -> Split:
    """Split by index: validation and test are their shares rounded down, train is the rest.

    >>> frame = pl.DataFrame({"user": [1, 2] * 10, "item": [3, 4] * 10, "timestamp": range(20)})
    >>> parts = split_log(InteractionLog.from_frame(frame))
    >>> len(parts.train), len(parts.validation), len(parts.test)
    (16, 2, 2)
    """
    if not isinstance(log, InteractionLog):
        raise DataError(f"expected a log, not {type(log).__name__}; read files and frames with felrec.read_log")
    n = len(log)
    if n < FEWEST:
        raise DataError(f"a log of {n} events is too short to split; give at least {FEWEST}")
    sizes = int(validation * n), int(test * n)
    train = n - sum(sizes)
    if min(train, *sizes) < 1:
        raise DataError(
            f"validation={validation}, test={test}: {n:,} events give {train:,} to train, {sizes[0]:,} to validate"
            f" and {sizes[1]:,} to test; give shares that leave at least one event for each part"
        )
    return Split(log, train, train + sizes[0])


def repeats(log: InteractionLog, stop: int | None = None) -> NDArray[np.bool_]:
    """For each event before `stop`, whether its user had taken its item earlier."""
    window = log[:stop]
    pairs = window.users.astype(np.int64) * log.n_items + window.items
    return ~pl.Series(pairs).is_first_distinct().to_numpy()
