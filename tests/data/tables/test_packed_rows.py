"""PackedRows against a dictionary of whole rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from felrec.data.tables import packed_rows
from felrec.data.tables.packed_rows import PackedColumn, PackedRows
from felrec.data.tables.table import TableState

SIZE, OWNERS = 11, 7
COLUMNS = {"other": (np.int32, -1), "count": (np.float32, 0)}
Row = tuple[list[int], list[int]]
slots = st.lists(st.tuples(st.integers(-1, 3), st.integers(0, 2)), max_size=SIZE)
writes = st.lists(st.dictionaries(st.integers(0, OWNERS - 1), slots, max_size=4), max_size=8)


def row(used: list[tuple[int, int]]) -> Row:
    free = SIZE - len(used)
    return [other for other, _ in used] + free * [-1], [count for _, count in used] + free * [0]


def arrays(rows: list[Row]) -> TableState:
    others, counts = np.array([other for other, _ in rows]), np.array([count for _, count in rows])
    return {"other": others.reshape(-1, SIZE), "count": counts.reshape(-1, SIZE)}


def check(packed: PackedRows, model: dict[int, Row]) -> None:
    """All rows are those of the model, and no two rows share a slot."""
    for values in (packed.state(), {name: packed.read(np.arange(len(packed)), name) for name in COLUMNS}):
        expected = arrays([model.get(owner, row([])) for owner in range(len(packed))])
        for name, (dtype, _) in COLUMNS.items():
            assert values[name].dtype == dtype
            assert values[name].tolist() == expected[name].tolist()
    taken = [
        slot
        for place, used in zip(packed.place.values.tolist(), packed.used.values.tolist(), strict=True)
        for slot in range(place, place + used)
    ]
    assert len(set(taken)) == len(taken)
    assert max(taken, default=-1) < packed.end[0] <= len(packed.columns["other"].room)


@pytest.mark.parametrize("at_once", [2, 4_096])
@given(writes=writes, reserved=st.sampled_from([0, 3, 200]))
def test_rows_read_as_they_were_written(
    at_once: int, writes: list[dict[int, list[tuple[int, int]]]], reserved: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packed_rows, "_AT_ONCE", at_once)
        packed, model = PackedRows(SIZE, COLUMNS), dict[int, Row]()
        for write in writes:
            written = {owner: row(used) for owner, used in write.items()}
            packed.write(np.array([*written], dtype=np.int32), arrays([*written.values()]))
            model |= written
            check(packed, model)
            packed.reserve(reserved)
            check(packed, model)
        again = PackedRows(SIZE, COLUMNS)
        again.load(packed.state())
        check(again, model)
        again.clear()
        assert len(again) == 0
        check(again, {})


def test_only_used_slots_take_room() -> None:
    packed = PackedRows(128, COLUMNS)
    others = np.full((1_000, 128), -1)
    others[:, 0] = 5
    packed.write(np.arange(1_000), {"other": others, "count": others + 1})
    assert packed.end[0] == 4_000


def test_gaps_are_closed_before_more_room_is_taken() -> None:
    packed = PackedRows(SIZE, COLUMNS)
    for _ in range(500):
        packed.write(np.array([0]), arrays([row([(5, 1)])]))
        packed.write(np.array([0]), arrays([row([(5, 1)] * 9)]))
    assert len(packed.columns["other"].room) < 100


def test_a_column_reads_like_an_array() -> None:
    packed = PackedRows(SIZE, COLUMNS)
    packed.write(np.array([1]), arrays([row([(5, 1), (6, 2)])]))
    column = PackedColumn(packed, "count")
    assert len(column) == 2
    assert column[np.array([1, 0])].tolist() == [row([(5, 1), (6, 2)])[1], row([])[1]]
