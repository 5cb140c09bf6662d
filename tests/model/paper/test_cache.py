"""The cache against a dictionary of vectors."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from felrec.model.paper.cache import Cache, last_occurrence

writes = st.lists(st.lists(st.integers(0, 20), min_size=1, max_size=8), max_size=8)


@given(writes=writes)
def test_cache_matches_a_dictionary(writes: list[list[int]]) -> None:
    cache, model = Cache(2), dict[int, list[float]]()
    value = 0.0
    for rows in writes:
        vectors = []
        for row in rows:
            value += 1
            vectors.append([value, -value])
            model[row] = vectors[-1]  # the latest of a batch wins
        cache.write(np.array(rows), torch.tensor(vectors))
    asked = np.arange(-1, 25)
    expected = [model.get(int(row), [0.0, 0.0]) for row in asked]
    assert cache.read(asked).tolist() == expected
    assert torch.equal(cache.lengths(asked), torch.tensor(expected).norm(dim=1))
    again = Cache(2)
    again.restore(cache.snapshot())
    assert torch.equal(again.lengths(asked[1:]), cache.lengths(asked[1:]))
    assert len(cache) == max(model, default=-1) + 1


def test_contiguous_rows_are_a_view_and_equal_to_a_gather() -> None:
    cache = Cache(3)
    cache.write(np.arange(6), torch.randn(6, 3, generator=torch.Generator().manual_seed(0)))
    run = cache.read(np.arange(1, 5))
    gathered = cache.read(np.array([1, 3, 2, 4]))[torch.tensor([0, 2, 1, 3])]
    assert torch.equal(run, gathered)
    assert run.untyped_storage().data_ptr() == cache.read(np.arange(6)).untyped_storage().data_ptr()


def test_reads_of_padded_histories_keep_their_shape() -> None:
    cache = Cache(2)
    cache.write(np.array([0]), torch.ones(1, 2))
    assert cache.read(np.array([[-1, 0], [0, -1]])).tolist() == [[[0, 0], [1, 1]], [[1, 1], [0, 0]]]


def test_snapshot_restore_and_clear() -> None:
    cache = Cache(2)
    cache.write(np.array([1]), torch.ones(1, 2))
    snapshot = cache.snapshot()
    cache.write(np.array([1, 7]), torch.zeros(2, 2))
    cache.restore(snapshot)
    assert len(cache) == 2
    assert cache.read(np.array([1, 7])).tolist() == [[1, 1], [0, 0]]
    cache.clear()
    assert len(cache) == 0
    assert cache.read(np.array([1])).tolist() == [[0, 0]]
    assert snapshot.tolist() == [[0, 0], [1, 1]]  # a copy, untouched by what came later


def test_written_vectors_carry_no_gradient() -> None:
    cache = Cache(2)
    vectors = torch.ones(1, 2, requires_grad=True)
    cache.write(np.array([0]), vectors * 2)
    assert not cache.read(np.array([0])).requires_grad


def test_last_occurrence() -> None:
    assert last_occurrence(np.array([5, 5, 1, 5])).tolist() == [2, 3]
