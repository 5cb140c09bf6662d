"""What every table promises."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from felrec.data.events import RowChange
from felrec.data.pending import Pending
from felrec.data.tables.decayed_counts import DecayedCounts
from felrec.data.tables.histories import Histories
from felrec.data.tables.pair_counts import PairCounts
from felrec.data.tables.table import RowTable
from felrec.data.tables.top_k_counts import TopKCounts

USERS, ITEMS = np.random.default_rng(0).integers(0, 30, (2, 200)).astype(np.int32)


def change(table: RowTable, users: np.ndarray, items: np.ndarray) -> RowChange:
    if isinstance(table, Histories):
        return table.change(*Pending.of_owners(users, items))
    return table.change(items) if isinstance(table, DecayedCounts) else table.change(users, items)


def contents(table: RowTable) -> dict[str, list[float]]:
    return {name: values.tolist() for name, values in table.state().items()}


@pytest.mark.parametrize(
    "build", [lambda: Histories(3), lambda: TopKCounts(3), lambda: DecayedCounts(5), lambda: PairCounts()]
)
def test_a_change_reads_only_and_the_state_is_all_there_is(build: Callable[[], RowTable]) -> None:
    table, again = build(), build()
    empty = contents(table)
    for start in range(0, 200, 20):
        users, items = USERS[start : start + 20], ITEMS[start : start + 20]
        before = contents(table)
        planned = change(table, users, items)
        assert contents(table) == before
        again.load_state(table.state())
        table.apply_change(planned)
        assert contents(table) != before
        again.apply_change(change(again, users, items))
        assert contents(again) == contents(table)
    table.clear()
    assert contents(table) == empty
