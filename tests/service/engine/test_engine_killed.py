"""`kill -9` under load, a short version of `benchmarks/kill.py --rounds 100`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_nothing_is_lost_and_nothing_is_taken_in_twice() -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "kill.py"), "--rounds", "4", "--seed", "3"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, text=True, capture_output=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 kills" in done.stdout
    assert "nothing lost, nothing twice, all states equal" in done.stdout
