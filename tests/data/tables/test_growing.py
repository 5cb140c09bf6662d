"""Arrays that grow at their end."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from felrec.data.tables.growing import GrowingArray
from felrec.model.paper.cache import Cache
from felrec.service.engine.memory import resident_bytes

LARGE = 2**16  # rows of 1 kB: so large that the memory is given back when it is freed


@given(st.lists(st.lists(st.integers(0, 40), min_size=1, max_size=5, unique=True), max_size=10))
def test_rows_that_were_never_written_read_as_the_fill(writes: list[list[int]]) -> None:
    column, expected = GrowingArray(np.int32, (2,), fill=-1), np.full((41, 2), -1)
    for number, rows in enumerate(writes):
        column.write(np.array(rows), np.full((len(rows), 2), number))
        expected[rows] = number
    assert (column.read(np.arange(41)) == expected).all()
    assert (column.values == expected[: len(column)]).all()
    assert len(column) == max((max(rows) + 1 for rows in writes), default=0)


@pytest.mark.skipif(sys.platform != "linux", reason="measures resident memory in /proc")
def test_room_for_later_rows_takes_no_memory() -> None:
    column, cache = GrowingArray(np.float32, (256,), fill=-1), Cache(256)
    column.load(np.ones((LARGE, 256), dtype=np.float32))
    cache.restore(torch.ones(LARGE, 256))
    before = resident_bytes()
    column.grow(LARGE + 1)
    cache.grow(LARGE + 1)
    assert resident_bytes() - before < 2**24  # their room is 2**27 bytes, half of it used
    assert column.values[LARGE].tolist() == [-1.0] * 256
    assert cache.read(np.array([LARGE])).tolist() == [[0.0] * 256]
