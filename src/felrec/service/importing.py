"""Bringing a whole log into a store, resumably."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass

import polars as pl

from felrec.data.log import InteractionLog
from felrec.data.vocabulary import Vocabulary
from felrec.errors import DataError
from felrec.service.checks import read_id
from felrec.service.engine import Engine
from felrec.service.recorder import Progress
from felrec.service.records import NewEvent, Receipt


@dataclass(frozen=True)
class Imported:
    """What became of a log."""

    events: int  # taken in now
    before: int  # that the store had already
    late: int  # older than what the store knew


def note_of(fingerprint: str) -> str:
    """Under which name a store keeps how much of a log it has."""
    return f"import:{fingerprint}"


def taken_before(engine: Engine, log: InteractionLog) -> int:
    """How many events of a log the store has: from earlier imports, or because it began with the state after them."""
    fingerprint, _, cuts = engine.base.partition(":")
    of_base = int(cuts.split(":")[-1]) if fingerprint == log.fingerprint else 0
    return max(of_base, int(engine.notes.get(note_of(log.fingerprint), 0)))


def import_log(engine: Engine, log: InteractionLog, progress: Progress | None = None) -> Imported:
    """Submit what the store lacks of a log. How far it came is written with the events, so it can be called again."""
    start = taken_before(engine, log)
    if len(log) and log.times[-1] > time.time() + engine.limits.future_seconds:
        raise DataError("the log's newest event lies in the future; check --time-unit and the column of times")
    late, running = 0, list[tuple[int, Future[Receipt]]]()
    for events, end in _chunks(log, start, engine.limits.submission):
        running.append((len(events), engine.submit(events, notes={note_of(log.fingerprint): str(end)})))
        if len(running) == 2:  # prepare one while the other is taken in
            late += _finish(running.pop(0), progress)
    late += sum(_finish(one, progress) for one in running)
    return Imported(len(log) - start, start, late)


def _finish(one: tuple[int, Future[Receipt]], progress: Progress | None) -> int:
    events, future = one
    late = future.result().late
    if progress:
        progress(events)
    return late


def _chunks(log: InteractionLog, start: int, size: int) -> Iterator[tuple[list[NewEvent], int]]:
    """Events with their ids as strings, and where in the log they end."""
    users, items = id_strings(log.user_ids, "user"), id_strings(log.item_ids, "item")
    for begin in range(start, len(log), size):
        part = log[begin : begin + size]
        rows = zip(part.users.tolist(), part.items.tolist(), part.times.tolist(), strict=True)
        yield [NewEvent(users[user], items[item], moment) for user, item, moment in rows], begin + len(part)


def id_strings(ids: Vocabulary, name: str) -> list[str]:
    """All ids as the service spells them, checked as the service does."""
    texts: list[str] = ids.series.cast(pl.String).to_list()
    try:
        return [read_id(text, name) for text in texts]
    except ValueError as error:
        raise DataError(f"an id cannot be served: {error}; change it in the log") from None
