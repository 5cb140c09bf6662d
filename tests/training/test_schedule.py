from __future__ import annotations

import math
from itertools import pairwise

import pytest

from felrec.config import TrainingSettings
from felrec.training.schedule import learning_rate


def test_the_papers_hundred_epochs() -> None:
    settings = TrainingSettings()
    rates = [learning_rate(settings, epoch, step, 70) for epoch in range(100) for step in (0, 69)]
    assert rates[::2] == rates[1::2]  # set once an epoch
    by_epoch = rates[::2]
    assert by_epoch[0] == 1e-7
    assert by_epoch[10] == pytest.approx(0.01)
    assert by_epoch[99] == pytest.approx(1e-7)
    assert all(a < b for a, b in pairwise(by_epoch[:11]))
    assert all(a > b for a, b in pairwise(by_epoch[10:]))
    assert by_epoch[10 + 44] == pytest.approx(1e-7 + (0.01 - 1e-7) * (1 + math.cos(math.pi * 44 / 89)) / 2)


def test_short_runs_have_the_same_shape_by_step() -> None:
    settings = TrainingSettings(epochs=4)
    rates = [learning_rate(settings, epoch, step, 25) for epoch in range(4) for step in range(25)]
    assert rates.index(max(rates)) == 10
    assert len(set(rates)) > 90
    assert rates[-1] == pytest.approx(1e-7)
    assert learning_rate(TrainingSettings(epochs=4, schedule="epoch", warmup=0.25), 0, 13, 25) == 1e-7


def test_no_warmup_starts_at_the_top() -> None:
    assert learning_rate(TrainingSettings(epochs=2, warmup=0), 0, 0, 10) == pytest.approx(0.01)
