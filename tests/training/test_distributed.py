"""Several processes train as one does: the same losses, weights and states, with the work divided."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import needs
import train_together
from torchrun import run, torchrun
from train_together import STEPS, TRAININGS

SCRIPT = Path(train_together.__file__)
Found = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """What one process finds; like the others in a process of its own, with one thread."""
    folder = tmp_path_factory.mktemp("alone")
    return found_by([sys.executable, str(SCRIPT), str(folder)], folder)[0]


@pytest.fixture(scope="module", params=[2, 3])
def processes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Found]:
    """What each of several processes finds."""
    folder = tmp_path_factory.mktemp("together")
    return found_by(torchrun(request.param, SCRIPT, folder), folder)


def found_by(command: list[str], folder: Path) -> list[Found]:
    done = run(command)
    assert done.returncode == 0, done.stderr
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]


@pytest.mark.parametrize("name", TRAININGS)
def test_the_losses_are_those_of_one_process(alone: Found, processes: list[Found], name: str) -> None:
    assert len(alone[name]["losses"]) == STEPS
    for found in processes:
        assert found[name]["losses"] == pytest.approx(alone[name]["losses"], abs=1e-4)
        assert found[name]["metrics"] == pytest.approx(alone[name]["metrics"], abs=1e-4)


@pytest.mark.parametrize("name", TRAININGS)
@pytest.mark.parametrize("what", ["weights", "state", "memory"])
def test_every_process_holds_the_same_bits_as_one(alone: Found, processes: list[Found], name: str, what: str) -> None:
    assert {found[name][what] for found in processes} == {alone[name][what]}


@pytest.mark.parametrize("name", TRAININGS)
def test_each_process_computes_a_share(alone: Found, processes: list[Found], name: str) -> None:
    if TRAININGS[name][0] == "felrec-s":
        needs.kernels()  # without them each computes everything
    whole, shares = alone[name]["computed"], [found[name]["computed"] for found in processes]
    assert sum(shares) == whole
    assert max(shares) < 0.7 * whole
