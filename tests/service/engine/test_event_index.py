"""The places of events by owner."""

from __future__ import annotations

import tracemalloc

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from felrec.service.engine.event_index import Postings

blocks = st.lists(st.lists(st.integers(0, 6), max_size=20), max_size=8)


@given(blocks)
def test_postings_are_what_a_search_of_all_events_finds(blocks: list[list[int]]) -> None:
    owners = np.array([owner for block in blocks for owner in block], dtype=np.int32)
    first = len(blocks[0]) if blocks else 0
    postings = Postings(owners[:first])
    for block in blocks[1:]:
        postings.append(np.array(block, dtype=np.int32), first)
        first += len(block)
    for owner in range(-1, 9):
        assert postings.of(owner).tolist() == np.flatnonzero(owners == owner).tolist()


def test_postings_of_many_new_owners_take_little_memory() -> None:
    postings, count = Postings(np.zeros(0, dtype=np.int32)), 50_000
    tracemalloc.start()
    try:
        for first in range(0, count, 250):
            postings.append(np.arange(first, first + 250, dtype=np.int32), first)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 64 * count  # a list for each owner took 200 bytes
