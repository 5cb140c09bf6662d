"""Changes of the signals of a FELRec-S, computed and applied by the compiled kernels.

The same as `SignalSet.change` and `SignalSet.apply_change`, which are the reference, and what other devices use.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from felrec.data.events import Events, Rows
from felrec.data.tables.packed_rows import PackedRows
from felrec.model.kernels.native.change_layout import ChangeLayout, NewChange
from felrec.model.kernels.native.event_tables import Block
from felrec.model.kernels.native.library import library
from felrec.model.kernels.native.state_view import StateView
from felrec.model.kernels.native.tables import address
from felrec.model.kernels.parallel import in_parallel
from felrec.model.signals.signal_set import SignalSet

_TOGETHER = 32  # histories that one thread encodes before it takes more


class CompiledChange(dict[str, tuple[Rows, NDArray[Any]]]):
    """A change that the kernels made, and can apply."""

    def __init__(self, made: NewChange) -> None:
        self.rows, change = made.rows()  # the numbers of changed rows, by their name in events.h
        super().__init__(change)
        self.made = made


class CompiledEvents:
    """Computes and applies changes of one set of signals. Several threads may compute, but not while one applies."""

    def __init__(self, signals: SignalSet) -> None:
        kernels = library()
        assert kernels is not None, "ask `library` first"
        self.signals, self._kernels = signals, kernels
        self._state, self._layout = StateView(signals), ChangeLayout(signals)
        self._growing, self._packed = _growing(signals), _packed(signals)

    def __deepcopy__(self, memo: dict[int, Any]) -> None:
        """Addresses are not copied: a copy of the model makes its own."""

    def change(self, events: Events) -> CompiledChange:
        """The rows that a block of events changes. Reads only."""
        shown, against = events.shown(), events.against()
        users, items = (np.ascontiguousarray(rows, dtype=np.int32) for rows in (shown.users, shown.items))
        times = np.ascontiguousarray(shown.times, dtype=np.float64)
        weights = None if shown.weights is None else np.ascontiguousarray(shown.weights, dtype=np.float32)
        block = Block(
            len(shown),
            address(users, "i4"),
            address(items, "i4"),
            address(times, "f8"),
            None if weights is None else address(weights, "f4"),
            len(against.items),
            address(against.items, "i4"),
            address(against.weights, "f4"),
        )
        made, state = self._layout.allocate(len(events)), self._state.current()
        failed = self._kernels.felrec_change(state, ctypes.addressof(block), made.address)
        if failed or (self.signals.vectors and self._encode(state, made)):
            raise MemoryError(f"not enough memory for {len(events)} events")
        return CompiledChange(made)

    def _encode(self, state: int, made: NewChange) -> bool:
        """Compute the vectors; with several threads each history is still encoded by one of them."""
        histories = made.structure.users + made.structure.items

        def encode(begin: int) -> bool:
            return bool(self._kernels.felrec_encode(state, made.address, begin, min(histories, begin + _TOGETHER)))

        if histories <= _TOGETHER:
            return encode(0)
        return any(list(in_parallel(encode, range(0, histories, _TOGETHER))))

    def apply(self, change: CompiledChange) -> None:
        """Copy the rows of a change."""
        for name, tables in self._growing.items():
            rows = change.rows[name]
            if len(rows):
                for table in tables:
                    table.grow(int(rows[-1]) + 1)
                if name in self._packed:
                    self._packed[name].reserve(len(rows) * self._packed[name].size)
        new_items = self._kernels.felrec_apply(self._state.current(), change.made.address)
        if self.signals.trend:
            self.signals.trend.counts.items += new_items


def _growing(signals: SignalSet) -> dict[str, list[Any]]:
    """The tables that changed rows may extend, by the name of these rows."""
    recent, vectors = signals.recent, signals.vectors
    growing: dict[str, list[Any]] = {
        "user_rows": [*recent.users.growing.values(), *([vectors.users] if vectors else [])],
        "item_rows": [*recent.items.growing.values(), *([vectors.items] if vectors else [])],
    }
    if signals.trend:
        growing["trend_rows"] = [*signals.trend.counts.growing.values()]
    if signals.sequence:
        growing["sequence_rows"] = [signals.sequence.vectors, signals.sequence.masses]
    for name, rows in _packed(signals).items():
        growing.setdefault(name, []).append(rows)
    return growing


def _packed(signals: SignalSet) -> dict[str, PackedRows]:
    """The tables whose rows may move when they change, by the name of these rows."""
    of_signals = {
        "user_rows": signals.repetition,
        "near_rows": signals.together,
        "next_rows": signals.follows,
        "ahead_rows": signals.ahead,
    }
    return {name: signal.counts.rows for name, signal in of_signals.items() if signal}
