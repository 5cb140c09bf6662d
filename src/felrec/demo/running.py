"""Prepare a demo of one of the worlds, and serve it."""

from __future__ import annotations

import json
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from felrec import runs
from felrec.comparison import ProgressReporter, Silent
from felrec.data.events import Events
from felrec.data.log import InteractionLog
from felrec.data.reading.sources import read_log
from felrec.data.split import split_log
from felrec.demo.films import films
from felrec.demo.groceries import groceries
from felrec.demo.synthetic import synthetic_groceries, synthetic_songs
from felrec.demo.world import World
from felrec.errors import CheckpointError, ConfigError, StoreBusy, StoreError
from felrec.service.engine.engine import Engine
from felrec.service.http.listening import listen
from felrec.service.http.server import serve
from felrec.service.maintenance.importing import id_strings, named
from felrec.store.sqlite import SqliteStore

MODEL = "felrec-s"
EVENTS = 40_000  # the newest of the log, few enough to train on within a minute
BLOCK = 256
WorldName = Literal["groceries", "songs", "films"]

SETTINGS: dict[str, Any] = {"epochs": 1}
MARK = "demo.json"


def run_demo(
    out: Path,
    port: int,
    announce: Callable[[str], object],
    reporter: ProgressReporter | None = None,
    world: WorldName = "groceries",
    data: Path = Path("data"),
) -> None:
    """Prepare the demo in `out`, then serve it until SIGINT or SIGTERM; `announce` gets the address of the page."""
    with listen_somewhere(port) as listener:  # claim the port before the slow part
        serve(prepare(out, load(world, data), reporter), listener, None, announce)


def load(world: WorldName, data: Path) -> World:
    """The events and items of a world; films are downloaded into `data` unless they are there."""
    if world == "films":
        return films(EVENTS, data)
    if world == "songs":
        return synthetic_songs(EVENTS)
    return groceries(EVENTS) or synthetic_groceries(EVENTS)


def prepare(out: Path, world: World, reporter: ProgressReporter | None = None) -> Engine:
    """Train into `out`, which must be new or hold an earlier demo (which is replaced), and fill a store.

    The store starts from the first 90 % of the events; the engine ingests the last 10 % as live events.
    """
    _clear(out)
    (out / MARK).write_text(json.dumps({"source": world.source}) + "\n")
    world.events.write_parquet(out / "log.parquet")
    log = read_log(out / "log.parquet")
    split = split_log(log)
    with (reporter or Silent()).training(MODEL, out / MODEL) as seen:
        model = runs.train(split, MODEL, out / MODEL, SETTINGS, listeners=(seen,), progress=seen)
    engine = Engine.open(SqliteStore(out / "store.sqlite"), model)
    for item, attributes in world.attributes.items():
        engine.put_item(item, attributes).result()
    _send(engine, log, split.test)
    return engine


def listen_somewhere(port: int) -> socket.socket:
    """Listen on `port` of this machine, or on a free one if it is in use."""
    try:
        return listen("127.0.0.1", port)
    except ConfigError:
        return listen("127.0.0.1", 0)


def _clear(out: Path) -> None:
    """Remove an earlier demo from `out`; raise an error if `out` holds anything else."""
    if out.exists() and not _is_demo(out):
        raise CheckpointError(f"{out} is not an earlier demo; choose another --out")
    if _is_served(out / "store.sqlite"):
        raise CheckpointError(f"{out} is in use by a running demo; stop it, or choose another --out")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)


def _is_demo(out: Path) -> bool:
    """Whether a directory is empty or holds only what `prepare` writes."""
    if not out.is_dir():
        return False
    names = {entry.name for entry in out.iterdir()}
    others = {name for name in names - {MARK, "log.parquet", MODEL} if not name.startswith("store.sqlite")}
    return not names or (MARK in names and not others)


def _is_served(store: Path) -> bool:
    try:
        SqliteStore(store, "write").close()
    except StoreBusy:
        return True
    except StoreError:  # missing or damaged
        return False
    return False


def _send(engine: Engine, log: InteractionLog, events: Events) -> None:
    users, items = id_strings(log.user_ids, "user"), id_strings(log.item_ids, "item")
    for block in events.blocks(BLOCK):
        engine.submit(named(block, users, items)).result()
