"""Where a cluster runs: a store for each measurement, on SQLite or on a PostgreSQL server of the benchmark."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from felrec import load, split_log, synthetic_log, train
from felrec.data.events import EventColumns
from felrec.fitted import FittedModel
from felrec.service.engine.limits import Limits
from felrec.store.opening import open_store
from felrec.store.postgres import PostgresStore
from felrec.store.sqlite import SqliteStore

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests"))  # they have a server to start

if TYPE_CHECKING:
    from postgresql import PostgresServer

START = 1_500_000_000  # the time of event 0; each event has its own second, which identifies it
TINY: dict[str, Any] = {
    "epochs": 1,
    "width": 16,
    "layers": 1,
    "heads": 2,
    "feed_forward": 32,
    "history_length": 16,
    "members": 1,
}
LIMITS = Limits(save_seconds=1.0)  # so that a kill comes also while the state is saved
_numbers = count()


@dataclass(frozen=True)
class Place:
    """Where one store is."""

    address: str
    namespace: str | None = None

    def open(self) -> SqliteStore | PostgresStore:
        """As one of several processes."""
        return open_store(self.address, shared=True, namespace=self.namespace)

    def through(self, port: int) -> Place:
        """The same store, reached by another port of this machine."""
        head, _, tail = self.address.rpartition("@127.0.0.1:")
        return Place(f"{head}@127.0.0.1:{port}/{tail.partition('/')[2]}", self.namespace)


@dataclass
class World:
    """A folder, a trained model, and a PostgreSQL server once it is asked for."""

    folder: Path
    quick: bool
    failures: int | None  # kills or restarts of a measurement; None: as many as it wants
    _stack: ExitStack = field(default_factory=ExitStack)
    _server: PostgresServer | None = None

    @property
    def run(self) -> Path:
        """A small model."""
        run = self.folder / "run"
        if not run.exists():
            train(split_log(synthetic_log(2_000, n_users=80, n_items=60, seed=1).log), "felrec-s", run, TINY)
        return run

    def model(self) -> FittedModel:
        """A copy of it."""
        return load(self.run)

    @property
    def server(self) -> PostgresServer:
        """A PostgreSQL server that syncs to the disk, as by default."""
        if self._server is None:
            from postgresql import running_postgres

            self._server = self._stack.enter_context(running_postgres(fsync="on"))
        return self._server

    def place(self, kind: str) -> Place:
        """A new store."""
        if kind == "sqlite":
            return Place(str(self.folder / f"{next(_numbers)}.sqlite"))
        return Place(self.server.address(), f"n{next(_numbers)}")


@contextmanager
def world(folder: Path, quick: bool, failures: int | None) -> Iterator[World]:
    """A world that ends."""
    made = World(folder, quick, failures)
    with made._stack:
        yield made


def events_of(first: int, size: int) -> EventColumns:
    """The same events for the same numbers."""
    rng = np.random.default_rng(first)
    users, items = rng.integers(0, 500, size).tolist(), rng.integers(0, 300, size).tolist()
    times = START + first + np.arange(size, dtype=np.float64)
    return EventColumns([f"u{user}" for user in users], [f"i{item}" for item in items], times)
