"""A realistic store for benchmarks: a FELRec-S that observed a synthetic log, with all counts and vectors that follow.

The world of service_world.py is the worst case: there all items are equally popular, and nothing can be skipped.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file
from service_world import OF_THE_LOG, OF_USERS, in_memory

from felrec import runs
from felrec.data.events import Events, all_rows
from felrec.data.log import InteractionLog
from felrec.data.seen import pair_records
from felrec.data.split import split_log
from felrec.data.synthetic import synthetic_log
from felrec.evaluation.protocols import replay
from felrec.fitted import FittedModel
from felrec.pretrained import load_pretrained
from felrec.service.engine.identity import identity_of
from felrec.store.protocol import Base, Contents, TableSpec
from felrec.store.sqlite import SqliteStore

State = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Ingested:
    """A model and the state that a log left in it."""

    model: FittedModel
    log: Events
    state: State
    items: int

    @property
    def users(self) -> int:
        """Number of users."""
        return int(self.log.users.max()) + 1

    def user(self, row: int) -> str:
        """The id of a user."""
        return f"user-{row}"

    def fill(self, path: Path) -> None:
        """Create its store."""
        store = SqliteStore(path)
        store.begin(identity_of(self.model, empty=False), self._base())
        store.close()

    def contents(self) -> Contents:
        """The same without a file."""
        return in_memory(self.model, self._base(), self.state)

    def _base(self) -> Base:
        users, items = [self.user(row) for row in range(self.users)], [f"item-{row}" for row in range(self.items)]
        tables = [TableSpec(name, values.dtype.str, values.shape[1:]) for name, values in self.state.items()]
        return Base(users, items, pair_records(self.log), float(self.log.times[-1]), tables, all_rows(self.state))

    def with_copies(self, items: int) -> Ingested:
        """A catalogue of `items`: every item again and again, each copy linked to copies and a little less popular."""
        rows = np.arange(items)
        original, nth = rows % self.items, rows // self.items
        state = dict(self.state)
        for name, values in self.state.items():
            if name.startswith(OF_USERS) or name in OF_THE_LOG or len(values) != self.items:
                continue
            state[name] = values[original]
            if name.endswith("_other"):
                linked = np.where(values[original] < 0, -1, values[original] + (nth * self.items)[:, None])
                state[name] = np.where(linked < items, linked, -1).astype(values.dtype)
            if name == "trend_mass":
                state[name] = values[original] * np.float32(0.8) ** nth.astype(np.float32)[:, None]
        return replace(self, state=state, items=items)


def ingested(work: Path, weights: str, events: int, users: int, items: int) -> Ingested:
    """A log of `events` that a model with the bundled weights, or with trained ones, has observed."""
    log = world_log(events, users, items)
    model = load_pretrained() if weights == "bundled" else runs.load(trained(work))
    kept = work / f"ingested-{weights}-{events}-{users}-{items}.safetensors"
    if not kept.exists():
        print(f"ingesting {events:,} events, {weights} weights", flush=True)
        model.recommender.reset()
        replay(model.recommender, log.events)
        save_file({name: tensor.numpy() for name, tensor in model.recommender.state().items()}, kept)
    return Ingested(model, log.events, load_file(kept), int(log.items.max()) + 1)


def following(more: int, events: int, users: int, items: int) -> Events:
    """The events that come after those of `ingested` in a longer log of the same kind."""
    return world_log(events + more, users, items).events[events:]


def trained(work: Path) -> Path:
    """A run that was trained on a smaller log of the same kind."""
    folder = work / "run-trained"
    if not folder.exists():
        runs.train(split_log(world_log(60_000, 5_000, 2_500)), "felrec-s", folder, {})
    return folder


def world_log(events: int, users: int, items: int) -> InteractionLog:
    """A synthetic log of baskets and short-lived items."""
    return synthetic_log(
        events, n_users=users, n_items=items, tastes=40, lifetime=3.0, birth_share=0.4, basket=3.0, seed=0
    ).log
