"""Importing a whole log into a store, resumably."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from felrec.answers.types import Receipt
from felrec.data.events import EventColumns, Events
from felrec.data.log import InteractionLog
from felrec.data.vocabulary import Vocabulary
from felrec.errors import DataError
from felrec.ids import check_id
from felrec.service.engine.committer import Progress
from felrec.service.engine.engine import Engine

Late = Literal["refuse", "take", "skip"]
_NOTE = "import:"


@dataclass(frozen=True)
class Imported:
    """What became of a log."""

    events: int  # imported now
    before: int  # that the store had already
    late: int  # of those imported now: older than the newest of the store
    skipped: int = 0


def note_of(fingerprint: str) -> str:
    """Under which name a store keeps how much of a log it has."""
    return f"{_NOTE}{fingerprint}"


def taken_before(engine: Engine, log: InteractionLog) -> int:
    """How many events of a log the store has: from earlier imports, or because it began with the state after them.

    A log that has grown since is recognised if the events it had then are its first ones.
    """
    return max((taken for known, length, taken in _known(engine) if _begins(log, known, length)), default=0)


def _known(engine: Engine) -> Iterator[tuple[str, int, int]]:
    """Logs that the store has something of: fingerprint, length as far as it can be told, and how many it has."""
    fingerprint, *cuts = engine.base.split(":")
    if len(cuts) == 2:
        train, validation = map(int, cuts)
        yield fingerprint, 2 * validation - train, validation  # the test part is as long as the validation part
    for name, taken in engine.notes.items():
        if name.startswith(_NOTE):
            yield name.removeprefix(_NOTE), int(taken), int(taken)


def _begins(log: InteractionLog, fingerprint: str, length: int) -> bool:
    return log.fingerprint == fingerprint or (length < len(log) and log.part(0, length).fingerprint == fingerprint)


def import_log(
    engine: Engine, log: InteractionLog, progress: Progress | None = None, *, late: Late = "refuse"
) -> Imported:
    """Submit the events of a log that the store lacks. Progress is written with the events, so a second call resumes.

    Events older than the newest of the store may be in it already: DataError says how many there are, unless `late`
    says to import them as of now ("take") or to skip them.
    """
    if len(log) and log.times[-1] > time.time() + engine.limits.future_seconds:
        raise DataError("the log's newest event lies in the future; check --time-unit and the column of times")
    before, clock = taken_before(engine, log), engine.health().clock
    start = max(before, int(np.searchsorted(log.times, clock, side="right"))) if late == "skip" else before
    if late == "refuse" and (old := int((log.times[start:] < clock).sum())):
        raise DataError(
            f"{old:,} of the {len(log) - start:,} events to take in are older than the newest of the store; if it has"
            " them, add --late skip (only what is newer), else --late take (they count as of now)"
        )
    came_late, running = 0, None
    for events, end in _chunks(log, start, engine.limits.submission):  # one is prepared while another is ingested
        came_late += _finish(running, progress)  # before the next: its note must not hide a failure
        running = len(events), engine.submit(events, notes={note_of(log.fingerprint): str(end)})
    came_late += _finish(running, progress)
    return Imported(len(log) - start, before, came_late, start - before)


def _finish(running: tuple[int, Future[Receipt]] | None, progress: Progress | None) -> int:
    """Wait for a chunk; how many of its events came late."""
    if running is None:
        return 0
    events, future = running
    late = future.result().late
    if progress:
        progress(events)
    return late


def _chunks(log: InteractionLog, start: int, size: int) -> Iterator[tuple[EventColumns, int]]:
    """Events with their ids as strings, and where in the log they end."""
    users, items = id_strings(log.user_ids, "user"), id_strings(log.item_ids, "item")
    for begin in range(start, len(log), size):
        part = log.events[begin : begin + size]
        yield named(part, users, items), begin + len(part)


def named(events: Events, users: Sequence[str | None], items: Sequence[str | None]) -> EventColumns:
    """Events with the ids of their rows, none of which is missing."""
    return EventColumns(
        [str(users[row]) for row in events.users.tolist()],
        [str(items[row]) for row in events.items.tolist()],
        events.times,
    )


def id_strings(ids: Vocabulary, name: str) -> list[str]:
    """All ids as the service spells them, checked as the service does."""
    texts: list[str] = ids.series.cast(pl.String).to_list()
    try:
        return [check_id(text, name) for text in texts]
    except ValueError as error:
        raise DataError(f"an id cannot be served: {error}; change it in the log") from None
