"""What the tests of stores and engines share: tiny models without a training, and their offline twins."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch

from felrec.answers.types import Receipt, Rejected
from felrec.data.events import EventColumns, Events
from felrec.data.log import InteractionLog
from felrec.data.seen import SeenPairs, pair_records
from felrec.data.split import Sizes
from felrec.data.vocabulary import Vocabulary
from felrec.fitted import FittedModel
from felrec.model.signals.signal_set import SIGNALS
from felrec.recommender import Recommender
from felrec.registry import MODELS
from felrec.service.engine.cluster.member import AnyEngine
from felrec.service.engine.engine import Engine
from felrec.service.engine.limits import Limits
from felrec.service.engine.types import IdempotencyKey
from felrec.store.protocol import Contents
from felrec.store.sqlite import SqliteStore

BASE = Events.of(np.arange(200) % 20, np.arange(200) * 7 % 31, np.arange(200) * 60.0)
TINY = {
    "width": 8,
    "layers": 1,
    "heads": 2,
    "feed_forward": 16,
    "history_length": 6,
    "queue_size": 16,
    "members": 2,
}
NOTHING = Events.of([], [], [])
NO_REBUILD = Limits(rebuild_after=math.inf)  # the state stays as an erasure leaves it
Given = tuple[str, str] | tuple[str, str, float]  # user, item, time; now without a time


def fitted(name: str = "felrec-q", known: Events = NOTHING, seed: int = 0, **settings: Any) -> FittedModel:
    """A model with random weights that has observed some events; ids of the base are its row numbers."""
    kind = MODELS[name]
    tiny: dict[str, Any] = {key: value for key, value in TINY.items() if key in kind.settings.model_fields}
    if name == "felrec-s":
        tiny["signals"] = [signal for signal in SIGNALS if signal != "hit-rates"]  # vectors too: all kinds of tables
    chosen = kind.settings(**{**(tiny if name.startswith("felrec") else {}), **settings})
    users, items = int(known.users.max(initial=-1)) + 1, int(known.items.max(initial=-1)) + 1
    recommender = kind.build(chosen, seed, "cpu", Sizes(users, items, users, items))
    for block in known.blocks(256):
        recommender.observe(block)
    if name.startswith("felrec"):  # without a training all vectors are nearly the same, which would hide mistakes
        generator, state = torch.Generator().manual_seed(seed), recommender.state()
        for cache in ("user_cache", "item_cache"):
            state[cache] = torch.randn(state[cache].shape, generator=generator)
        recommender.load_state(state)
    return FittedModel(
        name=name,
        recommender=recommender,
        user_ids=Vocabulary(range(users)),
        item_ids=Vocabulary(range(items)),
        seen=SeenPairs.of_events(known),
        exclude_seen=False,
        after_validation=recommender.state(),
        fingerprint=f"log:{len(known)}:{len(known)}",
        settings=chosen.model_dump(),
        clock=float(known.times.max(initial=0.0)),
        pairs=pair_records(known),
    )


def old_and_new_log() -> InteractionLog:
    """A hundred events long ago, then a hundred of other users and items 450 days later."""
    age = ["old"] * 100 + ["new"] * 100
    frame = pl.DataFrame(
        {
            "user": [f"{name} user {n % 7}" for n, name in enumerate(age)],
            "item": [f"{name} item {n * 3 % 11}" for n, name in enumerate(age)],
            "timestamp": [1e9 + n + 450 * 86_400 * (name == "new") for n, name in enumerate(age)],
        }
    )
    return InteractionLog.from_frame(frame)


def fitted_to(log: InteractionLog) -> FittedModel:
    """FELRec-S after it has observed a whole log: a store can start with its state."""
    fingerprint = f"{log.fingerprint}:{len(log)}:{len(log)}"
    model = fitted("felrec-s", log.events)
    return replace(model, user_ids=log.user_ids, item_ids=log.item_ids, fingerprint=fingerprint)


def open_engine(path: Path, model: FittedModel | None = None, limits: Limits | None = None) -> Engine:
    """An engine over a file; a new one begins empty unless a model with a base is given."""
    model = model or fitted()
    return Engine.open(SqliteStore(path), model, limits=limits or NO_REBUILD, empty=not len(model.pairs))


def made_up(count: int, start: float = 1e9, users: int = 20, items: int = 30, seed: int = 0) -> list[Given]:
    """Random events, one a second."""
    rng = np.random.default_rng(seed)
    rows = zip(rng.integers(0, users, count).tolist(), rng.zipf(1.5, count).tolist(), range(count), strict=True)
    return [(f"user {user}", f"item {item % items}", start + n) for user, item, n in rows]


def submit(
    engine: AnyEngine, events: Sequence[Given], key: IdempotencyKey | None = None, rejected: Sequence[Rejected] = ()
) -> Future[Receipt]:
    users, items = [event[0] for event in events], [event[1] for event in events]
    times = [event[2] if len(event) == 3 else None for event in events]
    return engine.submit(EventColumns.of(users, items, times), key, rejected)


def post(engine: AnyEngine, events: Sequence[Given], key: IdempotencyKey | None = None) -> Receipt:
    return submit(engine, events, key).result(timeout=60)


def digest(recommender: Recommender) -> str:
    """Of every byte of the state."""
    state = sorted(recommender.state().items())
    return hashlib.sha256(b"".join(name.encode() + tensor.numpy().tobytes() for name, tensor in state)).hexdigest()


def state_of(engine: Engine) -> str:
    return digest(engine._state.recommender)


def contents_of(path: Path) -> Contents:
    with SqliteStore(path, "read") as store:
        assert store.verify() == []
        return store.load()


def replayed_offline(path: Path, model: FittedModel | None = None) -> str:
    """The state that a model reaches with `observe` alone, given the journal of a store and its boundaries."""
    contents, model = contents_of(path), model or fitted()
    seen = np.maximum.accumulate(np.maximum(contents.events.times, contents.clock))  # time never runs backwards
    whole = Events(contents.events.users, contents.events.items, seen)
    for begin, end in zip(contents.blocks[:-1], contents.blocks[1:], strict=True):
        if begin < end:  # all events of a block may have been erased
            model.recommender.observe(whole[begin:end])
    return digest(model.recommender)


def rebuilt(engine: Engine) -> Iterator[None]:
    """The pieces of a rebuild that is wanted, and of saving its state; only for the ingest thread."""
    rebuilding, saver = engine._committer.rebuilding, engine._committer.saver
    while rebuilding.running:
        if rebuilding._wanted:
            rebuilding.step()
        else:
            next(saver.finish(), None)
        yield


def save(engine: Engine) -> None:
    """Save the state now, instead of after some seconds."""
    engine._ingest.run(engine._committer.saver.save_all).result()
