"""The n-th other candidate, against counting."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from felrec.data.pending import Pending
from felrec.evaluation.compared import nth_others


@given(st.integers(2, 30), st.integers(0, 99))
def test_nth_others(candidates: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    targets = random.integers(candidates, size=4)
    left_out = [np.setdiff1d(random.integers(candidates, size=seed % 9), target) for target in targets]
    expected = [
        np.setdiff1d(np.arange(candidates), [*out, target]) for out, target in zip(left_out, targets, strict=True)
    ]
    numbers = np.array([random.integers(max(1, len(others)), size=6) for others in expected])
    found = nth_others(numbers, targets, Pending.of([out.tolist() for out in left_out]), candidates)
    for others, number, columns in zip(expected, numbers, found, strict=True):
        if len(others):
            np.testing.assert_array_equal(columns, others[number])
        assert (columns < candidates).all()
