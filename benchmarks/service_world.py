"""A large store for benchmarks, filled directly instead of ingesting millions of events.

The weights are those of a run trained for seconds; their quality does not matter for speed. Ids, histories, pairs and
vectors are random but have the right shapes, and are written with the same call that fills a new store from a run.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from felrec import runs
from felrec.data.events import Events, all_rows
from felrec.data.seen import PAIR, PairRecords
from felrec.data.split import split_log
from felrec.data.synthetic import synthetic_log
from felrec.fitted import FittedModel
from felrec.service.engine.identity import identity_of
from felrec.store.protocol import Base, Contents, TableSpec
from felrec.store.sqlite import SqliteStore

PAPER: dict[str, Any] = {}  # the defaults are the paper's sizes
SMALL: dict[str, Any] = {"width": 64, "history_length": 32, "layers": 1, "heads": 4, "feed_forward": 128}
QUICK: dict[str, Any] = {"width": 16, "history_length": 8, "layers": 1, "heads": 2, "feed_forward": 16}
OF_USERS = ("user_", "own_")  # prefixes of tables with a row per user; the others have a row per item
OF_THE_LOG = ("trend_events", "log_domain")  # tables of one row
NEWEST = 1_700_000_000.0  # time of the newest generated event


@dataclass(frozen=True)
class World:
    """Numbers of users and items, and of events in each history."""

    users: int
    items: int
    history: int

    def user(self, row: int) -> str:
        """The id of a user."""
        return f"user-{row}"

    def item(self, row: int) -> str:
        """The id of an item."""
        return f"item-{row}"


def make_run(folder: Path, settings: dict[str, Any], model: str = "felrec-q") -> Path:
    """Train a run of these sizes for a few seconds."""
    if not folder.exists():
        log = synthetic_log(1_500, n_users=60, n_items=80, seed=0).log
        runs.train(split_log(log), model, folder, {**settings, "epochs": 1, "batch_size": 512})
    return folder


def fill(path: Path, run: Path, world: World) -> None:
    """Create the store of a world."""
    model = runs.load(run)
    state, pairs = made_up(model, world)
    users, items = [world.user(row) for row in range(world.users)], [world.item(row) for row in range(world.items)]
    tables = [TableSpec(name, values.dtype.str, values.shape[1:]) for name, values in state.items()]
    base = Base(users, items, pairs, NEWEST, tables, all_rows(state))
    store = SqliteStore(path)
    store.begin(identity_of(model, empty=False), base)
    store.close()


def contents(model: FittedModel, world: World) -> Contents:
    """The same without a file, for benchmarks that only read."""
    state, pairs = made_up(model, world)
    users, items = [world.user(row) for row in range(world.users)], [world.item(row) for row in range(world.items)]
    return in_memory(model, Base(users, items, pairs, NEWEST, [], {}), state)


def in_memory(model: FittedModel, base: Base, state: dict[str, np.typing.NDArray[Any]]) -> Contents:
    """The contents of a store that was created from a base, with the rows of all tables."""
    return Contents(
        identity=identity_of(model, empty=False),
        users=list(base.users),
        items=list(base.items),
        pairs=base.pairs,
        parts=np.array([0, len(base.pairs)]),
        events=Events.of([], [], []),
        blocks=np.zeros(1, dtype=np.int64),
        applied=0,
        clock=base.clock,
        seconds=0.0,
        state=state,
        attributes={},
        answers=[],
        notes={},
    )


def made_up(model: FittedModel, world: World) -> tuple[dict[str, np.typing.NDArray[Any]], PairRecords]:
    """Rows of every table of the state, and the pairs of users and items in the users' histories."""
    random = np.random.default_rng(0)
    state = {}
    for name, tensor in model.recommender.state().items():
        if name in OF_THE_LOG:
            state[name] = tensor.numpy()
            continue
        owners, others = (world.users, world.items) if name.startswith(OF_USERS) else (world.items, world.users)
        state[name] = _table(name, tensor.numpy(), owners, others, world.history, random)
    pairs = np.empty(world.users * world.history, dtype=PAIR)
    pairs["user"] = np.repeat(np.arange(world.users), world.history)
    pairs["item"] = random.integers(world.items, size=len(pairs))
    pairs["events"], pairs["time"] = 1, np.linspace(NEWEST - 1e6, NEWEST, len(pairs))
    return state, pairs


def _table(
    name: str,
    like: np.typing.NDArray[Any],
    owners: int,
    others: int,
    history: int,
    random: np.random.Generator,
) -> np.typing.NDArray[Any]:
    """Random vectors, rings of counterparts or counts, one row per owner."""
    if name.endswith("cache"):
        return random.standard_normal((owners, *like.shape[1:]), dtype=np.float32)
    if name.endswith("ring"):
        ring = np.full((owners, *like.shape[1:]), -1, dtype=like.dtype)
        ring[:, :history] = random.integers(others, size=ring[:, :history].shape)
        return ring
    if name.endswith("_other"):  # top-k counts of users and of items contain items
        items = others if name.startswith(OF_USERS) else owners
        return random.integers(items, size=(owners, *like.shape[1:]), dtype=like.dtype)
    return np.full((owners, *like.shape[1:]), history, dtype=like.dtype)
