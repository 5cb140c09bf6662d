"""Import a log into a store; an interrupted import can be resumed."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Literal

import numpy as np

from felrec.answers.types import Receipt
from felrec.data.events import BEGINNING, EventColumns, Events
from felrec.data.lazy_polars import pl
from felrec.data.log import InteractionLog
from felrec.data.vocabulary import Vocabulary
from felrec.errors import DataError
from felrec.ids import check_id
from felrec.service.engine.base_events import IMPORTED, note_of
from felrec.service.engine.committer import Progress
from felrec.service.engine.engine import Engine
from felrec.service.engine.limits import Limits

Late = Literal["refuse", "take", "skip"]


@dataclass(frozen=True)
class Imported:
    """The result of an import."""

    events: int  # imported now
    before: int  # already in the store
    late: int  # imported now, and older than the newest event of the store
    skipped: int = 0


def taken_before(base: str, notes: Mapping[str, str], log: InteractionLog) -> int:
    """Number of events of a log that a store with this base and these notes has.

    They are from earlier imports or from its initial state. A log that has grown since is recognised if its first
    events are unchanged.
    """
    return max((taken for known, length, taken in _known(base, notes) if _begins(log, known, length)), default=0)


def _known(base: str, notes: Mapping[str, str]) -> Iterator[tuple[str, int, int]]:
    """Logs with events in the store: fingerprint, probable length, and number of events in the store."""
    fingerprint, *cuts = base.split(":")
    if len(cuts) == 2:
        train, validation = map(int, cuts)
        yield fingerprint, 2 * validation - train, validation  # the test part is as long as the validation part
    for name, taken in notes.items():
        if name.startswith(IMPORTED):
            yield name.removeprefix(IMPORTED), int(taken), int(taken)


def _begins(log: InteractionLog, fingerprint: str, length: int) -> bool:
    return log.fingerprint == fingerprint or (length < len(log) and log.part(0, length).fingerprint == fingerprint)


def import_log(
    engine: Engine, log: InteractionLog, progress: Progress | None = None, *, late: Late = "refuse"
) -> Imported:
    """Submit the events of a log that the store lacks. Progress is stored with the events, so a second call resumes.

    Events older than the newest event of the store may already be in it. They raise DataError, unless `late` says to
    import them as of now ("take") or to skip them ("skip").
    """
    refuse_future(log, engine.limits)
    before, health = taken_before(engine.base, engine.notes, log), engine.health()
    clock = health.clock if health.events else BEGINNING
    start = max(before, int(np.searchsorted(log.times, clock, side="right"))) if late == "skip" else before
    if late == "refuse" and (old := int((log.times[start:] < clock).sum())):
        raise DataError(
            f"{old:,} of the {len(log) - start:,} events to import are older than the newest event of the store;"
            " add --late skip (only newer events), --late merge (in time order, without those that it has: the store is"
            " built again) or --late take (they count as of now)"
        )
    came_late, running = 0, None
    for events, end in _chunks(log, start, engine.limits.submission):  # prepared while the last one is ingested
        came_late += _finish(running, progress)  # before the next submission, whose note would hide a failure
        running = len(events), engine.submit(events, notes={note_of(log.fingerprint): str(end)})
    came_late += _finish(running, progress)
    return Imported(len(log) - start, before, came_late, start - before)


def refuse_future(log: InteractionLog, limits: Limits) -> None:
    """Raise DataError if the newest event of a log is in the future."""
    if len(log) and log.times[-1] > time.time() + limits.future_seconds:
        raise DataError("the log's newest event is in the future; check --time-unit and --time-col")


def _finish(running: tuple[int, Future[Receipt]] | None, progress: Progress | None) -> int:
    """Wait for a chunk; return the number of its late events."""
    if running is None:
        return 0
    events, future = running
    late = future.result().late
    if progress:
        progress(events)
    return late


def _chunks(log: InteractionLog, start: int, size: int) -> Iterator[tuple[EventColumns, int]]:
    """Events with their ids as strings, and the index in the log after each chunk."""
    users, items = id_strings(log.user_ids, "user"), id_strings(log.item_ids, "item")
    for begin in range(start, len(log), size):
        part = log.events[begin : begin + size]
        yield named(part, users, items), begin + len(part)


def named(events: Events, users: Sequence[str | None], items: Sequence[str | None]) -> EventColumns:
    """Events with the ids of their rows, none of which may be erased."""
    return EventColumns(
        [str(users[row]) for row in events.users.tolist()],
        [str(items[row]) for row in events.items.tolist()],
        events.times,
        weights=events.weights,
    )


def id_strings(ids: Vocabulary, name: str) -> list[str]:
    """All ids as strings, with the same checks as in the service."""
    texts: list[str] = ids.series.cast(pl.String).to_list()
    if wrong := _invalid(texts, name):
        row, reason = next(iter(wrong.items()))
        raise DataError(
            f"invalid id {texts[row][:40]!r}: {reason}; change it in the log, or leave out the events of such ids with"
            " --bad-rows skip"
        )
    return texts


def without_invalid_ids(log: InteractionLog, max_bad: float) -> tuple[InteractionLog, list[str]]:
    """The events whose ids a service accepts, and the reasons why others were left out."""
    reasons, good = list[str](), np.ones(len(log), dtype=bool)
    for ids, rows, name in ((log.user_ids, log.users, "user"), (log.item_ids, log.items, "item")):
        wrong = _invalid(ids.series.cast(pl.String).to_list(), name)
        good &= ~np.isin(rows, list(wrong))
        reasons += dict.fromkeys(wrong.values())
    left_out = len(log) - int(good.sum())
    if left_out > max_bad * len(log):
        raise DataError(
            f"{left_out:,} of {len(log):,} events have invalid ids ({'; '.join(reasons)}), more than --max-bad"
            f" {max_bad:g} allows; change them in the log, or raise it"
        )
    return (log.only(log.events[np.flatnonzero(good)]), reasons) if left_out else (log, reasons)


def _invalid(texts: Sequence[str], name: str) -> dict[int, str]:
    """The rows of ids that a service would refuse, and why."""
    wrong = {}
    for row, text in enumerate(texts):
        try:
            check_id(text, name)
        except ValueError as error:
            wrong[row] = str(error)
    return wrong
