"""Build a new store from the journal of another, e.g. with other weights or without erased users."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice

import numpy as np

from felrec.data.events import EventColumns, Events
from felrec.data.log import InteractionLog
from felrec.data.reweighing import Reweighing
from felrec.errors import ConfigError
from felrec.fitted import FittedModel
from felrec.service.engine.base_events import note_of
from felrec.service.engine.committer import Committer, Progress
from felrec.service.engine.idempotency import IdempotencyStore
from felrec.service.engine.identity import begin
from felrec.service.engine.limits import Limits
from felrec.service.engine.serving_state import Block, ServingState
from felrec.service.maintenance.copying import copy_inbox
from felrec.service.maintenance.importing import named
from felrec.service.maintenance.journal import Journal, with_new_ids
from felrec.store.protocol import EMPTY_BASE, Besides, Contents, SharedStore

_BLOCKS = 64  # blocks applied between two writes


def events_to_replay(contents: Contents, log: InteractionLog | None) -> int:
    """The most events that a replay will apply."""
    return len(contents.events) + (_base_end(contents, log) if log is not None else 0)


def replay_store(
    contents: Contents,
    model: FittedModel,
    new: SharedStore,
    log: InteractionLog | None,
    progress: Progress | None = None,
    latest: float = np.inf,
    weights: Reweighing | None = None,
) -> None:
    """Fill a new store from an empty model, applying the journal in its original blocks.

    A store that started with the state of a run needs the log of that run: its events are applied before the journal,
    and the new store has all events in its own journal. Events with a time after `latest` get that of the newest event
    before them. With other `weights`, rows are numbered anew, because some events may be left out.
    """
    check_log(contents, log)
    if weights is not None:
        journal = journal_of(contents, log)
        (events,) = not_after(latest, [journal.events])
        blocks = replace(journal, events=weights.applied(events)).blocks(Limits())
    else:
        blocks = with_new_ids(not_after(latest, row_blocks(contents, log)), contents.users, contents.items)
    fill_store(new, model, blocks, contents, notes_to_keep(contents, log), progress)


def fill_store(
    new: SharedStore,
    model: FittedModel,
    blocks: Iterator[Block],
    contents: Contents,
    notes: Mapping[str, str],
    progress: Progress | None = None,
) -> None:
    """Fill a new store with blocks, applied to an empty model, and with what an old one has besides its journal."""
    begin(new, model, empty=True)
    state = ServingState(model, new.load())
    committer = Committer(new, state, IdempotencyStore(0.0, new), Limits(), 0)
    while batch := list(islice(blocks, _BLOCKS)):
        committer.commit_blocks(batch)
        committer.saver.save_if_due()
        if progress:
            progress(sum(len(block.events) for block in batch))
    committer.finish(Besides(contents.attributes, contents.answers, dict(notes)), contents.seconds)
    copy_inbox(contents, new)


def check_log(contents: Contents, log: InteractionLog | None) -> None:
    """Raise ConfigError unless `log` is the log that the store started with (None for an empty start)."""
    base = contents.identity.base
    if base != EMPTY_BASE and log is None:
        raise ConfigError(
            "the store started with the state of a run; give the log of that run with --log, or to felrec import with"
            " --training-log"
        )
    if log is not None and base.partition(":")[0] != log.fingerprint:
        raise ConfigError("--log is not the log that the store started with; give that log, unchanged")


def _base_end(contents: Contents, log: InteractionLog) -> int:
    """Number of events of the log that the store started with: the train and validation parts."""
    return min(len(log), int(contents.identity.base.rpartition(":")[2]))


def row_blocks(contents: Contents, log: InteractionLog | None) -> Iterator[Events]:
    """The base in blocks of the usual size, then the journal, both without erased users."""
    yield from _base_events(contents, log)
    yield from contents.event_blocks


def _base_events(contents: Contents, log: InteractionLog | None) -> Iterator[Events]:
    if log is not None:
        # The base has the rows of the log, so erased users are found without their ids.
        kept = np.array([name is not None for name in contents.users], dtype=bool)
        for block in log.events[: _base_end(contents, log)].blocks(Limits().block):
            yield block[np.flatnonzero(kept[block.users])]


def journal_of(contents: Contents, log: InteractionLog | None) -> Journal:
    """All events of a store, in order of arrival; `log` is the one that it started with, if any."""
    check_log(contents, log)
    return Journal(Events.joined([*_base_events(contents, log), contents.events]), contents.users, contents.items)


def named_blocks(contents: Contents, log: InteractionLog | None) -> Iterator[EventColumns]:
    """The events of `row_blocks` with their ids."""
    for events in row_blocks(contents, log):
        if len(events):
            yield named(events, contents.users, contents.items)


def not_after(latest: float, blocks: Iterable[Events]) -> Iterator[Events]:
    """The same events; each time after `latest` becomes the newest time before it (`latest` if there is none).

    >>> times = np.array([5.0, 7e9, 6.0, 8e9])
    >>> [block.times.tolist() for block in not_after(1e9, [Events.of([0] * 4, [0] * 4, times)])]
    [[5.0, 5.0, 6.0, 6.0]]
    """
    newest = -np.inf
    for block in blocks:
        wrong = block.times > latest
        known = np.maximum.accumulate(np.append(newest, np.where(wrong, -np.inf, block.times)))[1:]
        replaced = np.where(np.isfinite(known), known, latest)
        yield replace(block, times=np.where(wrong, replaced, block.times))
        newest = max(newest, float(known.max(initial=-np.inf)))


def notes_to_keep(contents: Contents, log: InteractionLog | None) -> dict[str, str]:
    """The notes of a store, such as records of imports, with one of the log that it started with."""
    notes = dict(contents.notes)
    if log is not None:
        name = note_of(log.fingerprint)
        notes[name] = str(max(int(notes.get(name, 0)), _base_end(contents, log)))
    return notes
