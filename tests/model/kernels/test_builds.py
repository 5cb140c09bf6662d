"""Every build of the kernels computes the same: the others are run here only by tests that ask for them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import needs
from felrec.errors import ConfigError
from felrec.model.kernels.native.library import builds, library, state_kernels

needs.kernels()

HERE = Path(__file__).parent
CHECKS = (
    "test_native.py::test_they_find_what_ranking_all_items_finds",
    "test_native.py::test_bounds_hold_at_later_moments_too",
    "test_comparing.py::test_an_evaluation_gives_the_same_ranks",
    "test_events.py::test_bundled_weights_and_full_tables",
    "test_items.py",
    "test_learning.py",
)
SLOWER = list(builds())[1:]


def test_wider_builds_come_first() -> None:
    lanes = {name: kernels.felrec_lanes() for name, kernels in builds().items()}
    assert lanes["answer"] == 4
    assert list(lanes.values()) == sorted(lanes.values(), reverse=True)


@pytest.mark.slow
@pytest.mark.parametrize("build", SLOWER)
def test_another_build_passes_the_same_tests(build: str) -> None:
    checks = [str(HERE / check) for check in CHECKS]
    environment = os.environ | {"FELREC_KERNELS": build}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:xdist", "-p", "no:cacheprovider", *checks]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3_000:]


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    monkeypatch.setenv("FELREC_KERNELS", "none")
    library.cache_clear()
    yield monkeypatch
    library.cache_clear()


def test_the_environment_names_a_build(chosen: pytest.MonkeyPatch) -> None:
    assert library() is None
    assert state_kernels() == "numpy"
    chosen.setenv("FELREC_KERNELS", "answer")
    library.cache_clear()
    assert state_kernels() == "c1-4"


def test_a_build_that_does_not_exist_is_refused_with_those_that_do(chosen: pytest.MonkeyPatch) -> None:
    chosen.setenv("FELREC_KERNELS", "fastest")
    library.cache_clear()
    with pytest.raises(ConfigError, match=r"FELREC_KERNELS=fastest.*use .*answer, none"):
        library()
