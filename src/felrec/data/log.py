"""The interaction log: user, item and time of each event, sorted by time, with dense rows for ids."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from felrec.data.events import Events, Rows, Times, Weights
from felrec.data.kinds import Given, KindTable
from felrec.data.lazy_polars import pl
from felrec.data.numbering import Codes, by_first_appearance, coded, sort_times
from felrec.data.reading.columns import Wanted
from felrec.data.reading.details import Kinds, Values, kinds_of, values_of
from felrec.data.reading.frames import raw_frame
from felrec.data.reading.good_rows import BadRowRule, SkippedRows, read_good_rows
from felrec.data.reading.raw import RawLog
from felrec.data.reading.weights import unmatched_in, weights_of, written_weights
from felrec.data.vocabulary import Vocabulary
from felrec.errors import DataError


@dataclass(frozen=True, eq=False)
class InteractionLog:
    """Events in time order (ties keep the order of the source), and the ids of their rows.

    Users and items are numbered by first appearance, so those seen before any given event are a prefix.

    >>> frame = pl.DataFrame({"user": ["b", "a"], "item": [7, 8], "timestamp": [20, 10]})
    >>> log = InteractionLog.from_frame(frame)
    >>> log.user_ids.ids(log.users), log.item_ids.ids(log.items), log.times.tolist()
    (['a', 'b'], [8, 7], [10.0, 20.0])
    """

    events: Events
    user_ids: Vocabulary
    item_ids: Vocabulary
    skipped: SkippedRows | None = None  # the rows of its source that could not be read and were left out
    kinds: Kinds | None = None  # of the events, if its source names them
    values: Values | None = None
    ignored: int = 0  # events that the table of kinds left out
    unmatched: tuple[str, ...] = ()  # entries of the table of kinds that no row of its source matches

    @property
    def users(self) -> Rows:
        """Rows of the users, (B,)."""
        return self.events.users

    @property
    def items(self) -> Rows:
        """Rows of the items, (B,)."""
        return self.events.items

    @property
    def times(self) -> Times:
        """Seconds since 1970, (B,)."""
        return self.events.times

    @property
    def n_users(self) -> int:
        """Number of users."""
        return len(self.user_ids)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.item_ids)

    def __len__(self) -> int:
        return len(self.events)

    def __getitem__(self, window: slice) -> Events:
        return self.events[window]

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the columns and the ids: equal on every machine for equal logs."""
        digest = hashlib.sha256()
        for column, kind in ((self.users, "<i4"), (self.items, "<i4"), (self.times, "<f8")):
            digest.update(np.ascontiguousarray(column, dtype=kind).data)
        if self.events.weights is not None:
            digest.update(b"weights;" + self.events.weights.astype("<f4").tobytes())
        for ids in (self.user_ids.series, self.item_ids.series):
            _digest_ids(digest, ids)
        return digest.hexdigest()

    def sample(self, n: int, seed: int) -> InteractionLog:
        """Draw a uniform sample of `n` events without replacement, in time order, with new row numbers.

        >>> frame = pl.DataFrame({"user": [1, 2, 3, 4], "item": [5, 6, 7, 8], "timestamp": [0, 1, 2, 3]})
        >>> len(InteractionLog.from_frame(frame).sample(2, seed=0))
        2
        """
        if not 0 < n <= len(self):
            raise DataError(f"cannot sample {n} events of a log of {len(self)}; ask for 1 to {len(self)}")
        kept = np.sort(np.random.default_rng(seed).choice(len(self), n, replace=False, shuffle=False))
        return self.only(self.events[kept])

    def part(self, start: int, stop: int) -> InteractionLog:
        """The events from `start` to `stop` as a separate log with new row numbers.

        >>> frame = pl.DataFrame({"user": [1, 2, 3], "item": [5, 6, 7], "timestamp": [0, 1, 2]})
        >>> part = InteractionLog.from_frame(frame).part(1, 3)
        >>> part.users.tolist(), part.user_ids.ids(part.users)
        ([0, 1], [2, 3])
        """
        return self.only(self.events[start:stop])

    def newest(self, n: int) -> InteractionLog:
        """The last `n` events, or all if there are not more, as a separate log."""
        if n < 1:
            raise DataError(f"cannot keep the newest {n} events; ask for at least 1")
        if n >= len(self):
            return self
        about = {"skipped": self.skipped, "ignored": self.ignored, "unmatched": self.unmatched}
        return replace(self.part(len(self) - n, len(self)), **about)  # type: ignore[arg-type]

    def only(self, events: Events) -> InteractionLog:
        """Some of the events, in time order, as a separate log with new row numbers."""
        users, old_users = by_first_appearance(events.users, self.n_users)
        items, old_items = by_first_appearance(events.items, self.n_items)
        return InteractionLog(
            Events(users, items, events.times, events.weights),
            Vocabulary(self.user_ids.series.gather(old_users)),
            Vocabulary(self.item_ids.series.gather(old_items)),
        )

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        user_col: str | None = None,
        item_col: str | None = None,
        time_col: str | None = None,
        time_unit: str = "auto",
        source: str = "frame",
        kinds: Given = None,
    ) -> InteractionLog:
        """Build from a polars or pandas frame or a pyarrow table; columns are found by their usual names.

        Error messages count rows from 1, in the frame's own order. `kinds` says what kinds of events mean.
        """
        raw = raw_frame(frame, Wanted(user_col, item_col, time_col), source)
        return log_of(raw, time_unit, kinds=KindTable.of(kinds))


def log_of(
    raw: RawLog, time_unit: str = "auto", rule: BadRowRule | None = None, kinds: KindTable | None = None
) -> InteractionLog:
    """Check, sort and number the events that were read, without those that the table of kinds leaves out."""
    source = raw.origin.name
    if not raw.frame.height:
        raise DataError(f"{source}: there are no events; give a log with at least one row of data")
    wanted = None if kinds is None else weights_of(raw.frame, raw.columns, kinds, source)[1]
    if wanted is not None and not wanted.any():
        raise DataError(f"{source}: the table of kinds leaves no event; change --kinds")
    good = read_good_rows(raw, time_unit, rule or BadRowRule(), wanted)
    order, seconds = sort_times(good.times)
    user_rows, user_ids = _numbered(coded(good.users), order)
    item_rows, item_ids = _numbered(coded(good.items), order)
    for ids, role in ((user_ids, "user"), (item_ids, "item")):
        if len(ids) < 2:
            raise DataError(f"{source}: all events have the same {role}; check --{role}-col, or give another log")
    return InteractionLog(
        Events(user_rows, item_rows, seconds, _weights(good.frame, raw, kinds, order)),
        user_ids,
        item_ids,
        good.skipped,
        kinds_of(good.frame, raw.columns),
        values_of(good.frame, raw.columns),
        ignored=0 if wanted is None else int((~wanted).sum()),
        unmatched=() if kinds is None else unmatched_in(raw.frame, raw.columns, kinds),
    )


def _weights(frame: pl.DataFrame, raw: RawLog, kinds: KindTable | None, order: NDArray[np.integer]) -> Weights | None:
    """The weights of the rows that were read, in time order; None if neither a table nor a column has them."""
    source, weights = raw.origin.name, None
    if kinds is not None:
        weights, _ = weights_of(frame, raw.columns, kinds, source)
    elif raw.columns.weight is not None:
        weights = written_weights(frame[raw.columns.weight], source)
    return None if weights is None else np.take(weights, order)


def _numbered(codes: Codes, order: NDArray[np.integer]) -> tuple[Rows, Vocabulary]:
    rows, old = by_first_appearance(codes.codes, codes.size, order)
    return rows, Vocabulary(codes.ids(old))


def _digest_ids(digest: hashlib._Hash, ids: pl.Series) -> None:
    """Hash lengths and bytes, so that ["ab", "c"] and ["a", "bc"] differ."""
    integers = ids.dtype == pl.Int64
    digest.update(f"{'int' if integers else 'str'}:{len(ids)};".encode())
    if integers:
        digest.update(np.ascontiguousarray(ids.to_numpy(), dtype="<i8").data)
        return
    digest.update(ids.str.len_bytes().to_numpy().astype("<u4").data)
    digest.update("".join(ids.to_list()).encode())
