"""Two small logs, small sizes, and a runner whose models are trained once for all tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from felrec.data.synthetic import synthetic_log
from felrec.experiments import Data, ExperimentRunner, Scale

MODELS = ("bpr-mf", "sasrec", "popularity", "decayed-popularity", "felrec-q", "felrec-p")
TINY: dict[str, Any] = {
    **{"width": 8, "heads": 2, "layers": 1, "feed_forward": 8, "history_length": 4},
    **{"queue_size": 16, "batch_size": 128},
}
SCALE = Scale(events=0.8, epochs=1, trained_share=0.5)


def data(name: str, seed: int, scale: Scale = SCALE) -> Data:
    return Data.of(name, synthetic_log(1_500, n_users=60, n_items=50, seed=seed).log, scale)


@pytest.fixture(scope="session")
def log() -> Data:
    return data("alpha", 3)


@pytest.fixture(scope="session")
def other() -> Data:
    return data("beta", 4)


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture
def runner(runs: Path) -> ExperimentRunner:
    return ExperimentRunner(runs, SCALE, MODELS, TINY)
