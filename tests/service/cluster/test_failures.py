"""Kills, stops, restarts and partitions under load: short versions of `benchmarks/cluster.py`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import needs

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "store"), [("kill", "sqlite"), ("kill", "postgresql"), ("restart", "postgresql")])
def test_nothing_is_lost_or_twice(name: str, store: str, tmp_path: Path) -> None:
    if store == "postgresql":
        needs.package("psycopg")
    out = tmp_path / "rows.json"
    script, source = str(ROOT / "benchmarks" / "cluster.py"), str(ROOT / "src")
    asked = "--quick", "--failures", "2", "--only", name, "--stores", store, "--json", str(out)
    command = [sys.executable, script, *asked]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": source}
    subprocess.run(command, env=environment, check=False, timeout=600, stdout=subprocess.DEVNULL)
    assert [row["name"] for row in json.loads(out.read_text())] == [name]  # it ends with an error if anything is wrong
