"""What depends on the hash never changes: sampled negatives of reports, vectors of users without events."""

from __future__ import annotations

import hashlib

import numpy as np

from felrec.evaluation.metrics import draw_negatives
from felrec.model.signals.seeds import seeds


def test_sampled_negatives_are_those_of_every_version() -> None:
    drawn = draw_negatives(np.array([0, 7, 10**6]), np.array([5.0, 1000, 77]), 2**62)
    assert drawn[:, :4].tolist() == [[0, 0, 4, 2], [664, 821, 500, 130], [13, 59, 49, 66]]


def test_seeds_are_those_of_every_version() -> None:
    vectors = seeds(np.arange(-1, 500), 72, 0).numpy()
    assert hashlib.sha256(vectors.tobytes()).hexdigest().startswith("fba05e0e0f0e")
