"""The memory of a change that the event kernels write."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from felrec.data.events import RowChange, Rows
from felrec.data.tables.trend_counts import PACE, TREND_HALF_LIVES
from felrec.model.kernels.native.event_tables import Change
from felrec.model.signals.ahead import SOON
from felrec.model.signals.item_links import WINDOW
from felrec.model.signals.signal_set import SignalSet

_ALIGNED = 64  # bytes
_INT: np.dtype[Any] = np.dtype("i4")
_LONG: np.dtype[Any] = np.dtype("i8")
_FLOAT: np.dtype[Any] = np.dtype("f4")
_BOTH = np.arange(2, dtype=np.int32)  # rows of the tables that belong to the log


class _Column(NamedTuple):
    """An array of a change, as events.h and as a `RowChange` name it."""

    field: str
    counted: str  # the field that says how many rows it has
    dtype: np.dtype[Any]
    shape: tuple[int, ...] = ()  # of a row
    entry: str = ""  # empty: these are the numbers of rows of other columns
    rows: str = ""  # the column with the numbers of its rows; empty: 0 and 1
    per_event: int = 1  # rows, at most
    more: int = 0


class NewChange:
    """Memory for the change of a block."""

    def __init__(self, columns: list[_Column], offsets: list[int], size: int) -> None:
        self._columns, self._offsets = columns, offsets
        self._memory: NDArray[np.uint8] = np.empty(size, dtype=np.uint8)
        self.structure = Change(rates=2)
        begin = self._memory.ctypes.data
        for column, offset in zip(columns, offsets, strict=True):
            setattr(self.structure, column.field, begin + offset)
        self.address = ctypes.addressof(self.structure)

    def rows(self) -> tuple[dict[str, Rows], RowChange]:
        """Once the kernels have written it: the row numbers by column, and the change."""
        numbers: dict[str, Rows] = {}
        change: RowChange = {}
        memory, structure = self._memory, self.structure
        for (field, counted, dtype, shape, entry, rows, _, _), offset in zip(self._columns, self._offsets, strict=True):
            count = getattr(structure, counted)
            array: NDArray[Any] = np.ndarray((count, *shape), dtype, memory, offset)
            if entry:
                change[entry] = (numbers[rows] if rows else _BOTH[:count], array)
            else:
                numbers[field] = array
        return numbers, change


class ChangeLayout:
    """Makes room for changes of one set of signals."""

    def __init__(self, signals: SignalSet) -> None:
        self._columns = list(_columns(signals))
        self._last = self._of(1)

    def allocate(self, events: int) -> NewChange:
        """Room for the change of so many events."""
        last = self._last
        if last[0] != events:
            last = self._last = self._of(events)
        return NewChange(self._columns, last[1], last[2])

    def _of(self, events: int) -> tuple[int, list[int], int]:
        offsets, end = [], 0
        for column in self._columns:
            offsets.append(end)
            rows = column.per_event * events + column.more
            end += -(-rows * column.dtype.itemsize * prod(column.shape) // _ALIGNED) * _ALIGNED
        return events, offsets, end


def _columns(signals: SignalSet) -> Iterator[_Column]:
    for side in ("user", "item"):
        rows = f"{side}_rows"
        yield _Column(rows, f"{side}s", _INT)
        yield _Column(f"{side}_ring", f"{side}s", _INT, (signals.recent.length,), f"{side}_ring", rows)
        yield _Column(f"{side}_count", f"{side}s", _LONG, (), f"{side}_count", rows)
    if signals.trend:
        yield _Column("trend_rows", "trend", _INT, more=PACE)
        for field, dtype, shape in (
            ("mass", _FLOAT, (len(TREND_HALF_LIVES),)),
            ("last", _LONG, ()),
            ("first", _LONG, ()),
        ):
            yield _Column(field, "trend", dtype, shape, f"trend_{field}", "trend_rows", more=PACE)
        yield _Column("log_rows", "log", _INT, more=1)
        yield _Column("log_values", "log", _LONG, (2,), "trend_events", "log_rows", more=1)
    if signals.repetition:
        for field, dtype in (("other", _INT), ("count", _FLOAT), ("nth", _INT), ("minute", _INT)):
            size = signals.repetition.counts.size
            yield _Column(f"own_{field}", "users", dtype, (size,), f"own_{field}", "user_rows")
    for signal, name, owners in (
        (signals.together, "near", WINDOW + 1),
        (signals.follows, "next", 2),
        (signals.ahead, "ahead", SOON + 1),
    ):
        if signal:
            yield _Column(f"{name}_rows", name, _INT, per_event=owners)
            for field, dtype in (("other", _INT), ("count", _FLOAT)):
                entry, size = f"{name}_{field}", signal.counts.size
                yield _Column(entry, name, dtype, (size,), entry, f"{name}_rows", owners)
    if signals.profile:
        shape = signals.profile.means.shape[1:]
        yield _Column("profile_means", "profile", _FLOAT, shape, "log_domain", per_event=0, more=2)
    if signals.hit_rates:
        shape = signals.hit_rates.counts.shape[1:]
        yield _Column("rate_counts", "rates", _FLOAT, shape, "rate_cells", per_event=0, more=2)
    if signals.sequence:
        yield _Column("sequence_rows", "sequence", _INT, per_event=WINDOW + 1)
        for field, size in (("vectors", 2 * signals.sequence.half), ("masses", 2)):
            entry = f"sequence_{field}"
            yield _Column(entry, "sequence", _FLOAT, (size,), entry, "sequence_rows", WINDOW + 1)
        shape = (signals.sequence.half**2,)
        for field, counted in (("spread", "rates"), ("whitening", "whitening")):
            yield _Column(f"sequence_{field}", counted, _FLOAT, shape, f"sequence_{field}", per_event=0, more=2)
    if signals.vectors:
        for side in ("user", "item"):
            entry = f"{side}_cache"
            yield _Column(f"{side}_vectors", f"{side}s", _FLOAT, (signals.vectors.width,), entry, f"{side}_rows")
