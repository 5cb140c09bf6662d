"""A tiny model, and the service around a real engine and a real file, asked through a real socket: no mocks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from felrec import runs
from felrec.data.split import split_log
from http_service.running import LOG, Open, Opened, opened_in_a_thread, start

TINY = {"width": 8, "heads": 2, "layers": 1, "feed_forward": 8, "history_length": 8, "queue_size": 64, "batch_size": 64}


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on a log of 60 users and 80 items whose ids are whole numbers."""
    out = tmp_path_factory.mktemp("run") / "q"
    runs.train(split_log(LOG), "felrec-q", out, {**TINY, "epochs": 1})
    return out


@contextmanager
def _opening(run: Path, folder: Path) -> Iterator[Open]:
    with ExitStack() as stack:

        def open_one(name: str = "store.sqlite", **options: Any) -> Opened:
            return stack.enter_context(opened_in_a_thread(run, folder / name, **options))

        yield open_one


@pytest.fixture
def open_service(run: Path, tmp_path: Path) -> Iterator[Open]:
    """Open a service over a file in the test's folder; close it and the same file goes on where it was."""
    with _opening(run, tmp_path) as open_one:
        yield open_one


@pytest.fixture(scope="module")
def service(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    """The service as it starts by default, shared by the tests of a file."""
    with _opening(run, tmp_path_factory.mktemp("service")) as open_one:
        yield open_one()


@pytest.fixture(scope="session")
def server(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of `felrec serve` in a process of its own."""
    with start(run, tmp_path_factory.mktemp("served") / "store.sqlite") as running:
        yield running.url
