"""`felrec serve` for the client to talk to."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from felrec import runs
from felrec.data.split import split_log
from felrec.data.synthetic import synthetic_log

TINY = {"width": 8, "heads": 2, "layers": 1, "feed_forward": 8, "history_length": 8, "queue_size": 64, "batch_size": 64}


@pytest.fixture(scope="session")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where a service answers, in a process of its own."""
    folder = tmp_path_factory.mktemp("served")
    log = synthetic_log(1_000, n_users=40, n_items=50, seed=3).log
    runs.train(split_log(log), "felrec-q", folder / "run", {**TINY, "epochs": 1})
    program = "from felrec.cli import main; main()"
    arguments = [sys.executable, "-c", program, "serve", str(folder / "run"), "--port", "0"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with (folder / "errors").open("w") as errors:
        process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment)
    assert process.stdout is not None
    address = re.search(r"http://\S+", process.stdout.readline())
    assert address is not None, (folder / "errors").read_text()
    yield address[0]
    process.terminate()
    process.wait(60)
    process.stdout.close()
