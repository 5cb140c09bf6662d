"""The service at a free port: in a thread, to look into it, or as `felrec serve` in a process of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx
import uvicorn
from fastapi import FastAPI
from pydantic import TypeAdapter

from felrec import runs
from felrec.data.synthetic import synthetic_log
from felrec.service.engine.clock import SteadyClock
from felrec.service.engine.engine import Engine
from felrec.service.engine.limits import Limits
from felrec.service.http.app import create_app
from felrec.service.http.connections import DEFAULT_LIMITS, ConnectionLimits
from felrec.service.http.listening import listen
from felrec.service.http.server import configured
from felrec.store.sqlite import SqliteStore

LOG = synthetic_log(1_500, n_users=60, n_items=80, seed=3).log
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "80"}


class Opened(httpx.Client):
    """A client of a service in this process, and its application."""

    app: FastAPI
    store: SqliteStore
    url: str
    stop: Callable[[], None]

    def count(self, name: str = "events") -> int:
        """A number of /v1/stats."""
        return int(self.get("/v1/stats").json()[name])


Open = Callable[..., Opened]
A = TypeVar("A")


def checked(kind: type[A], given: object) -> A:
    """An answer, with the types that the OpenAPI document says and no other fields."""
    return TypeAdapter(kind).validate_python(given)


@contextmanager
def opened_in_a_thread(
    run: Path,
    store: Path,
    limits: Limits | None = None,
    connections: ConnectionLimits = DEFAULT_LIMITS,
    clock: SteadyClock | None = None,
    **options: Any,
) -> Iterator[Opened]:
    """Serve a run from this process until the block ends."""
    file = SqliteStore(store)
    engine = Engine.open(file, runs.load(run), limits=limits or Limits(), clock=clock)
    app = create_app(engine, **options)
    server, listener = uvicorn.Server(configured(app, connections)), listen("127.0.0.1", 0)
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()

    def stop() -> None:
        server.should_exit = True
        thread.join(60)

    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    try:
        with Opened(base_url=url, timeout=60, trust_env=False) as client:
            client.app, client.store, client.url, client.stop = app, file, url, stop
            yield client
    finally:
        stop()


@dataclass
class Running:
    """A process that serves, and where."""

    process: subprocess.Popen[str]
    url: str
    errors: Path  # what it writes to stderr

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal and wait for the end; the exit code."""
        self.process.send_signal(how)
        return self.process.wait(60)


def command(*arguments: object) -> list[str]:
    """The real program."""
    return [sys.executable, "-c", "from felrec.cli import main; main()", *map(str, arguments)]


@contextmanager
def start(run: Path, store: Path, *options: object) -> Iterator[Running]:
    """Serve from a process of its own until the block ends."""
    arguments = ("serve", run, "--store", store, "--port", 0, *options)
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", delete=False) as errors:
        process = subprocess.Popen(
            command(*arguments), stdout=subprocess.PIPE, stderr=errors, text=True, env=ENVIRONMENT
        )
    assert process.stdout is not None
    watchdog = threading.Timer(120, process.kill)
    watchdog.start()
    try:
        address = re.search(r"http://\S+", process.stdout.readline())
        assert address is not None, Path(errors.name).read_text()
        yield Running(process, address[0], Path(errors.name))
    finally:
        watchdog.cancel()
        if process.poll() is None:
            process.terminate()
            process.wait(60)
        process.stdout.close()
        Path(errors.name).unlink()
