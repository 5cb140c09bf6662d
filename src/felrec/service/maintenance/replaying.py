"""Building a store anew from the journal of another: with other weights, or without what was erased."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from felrec.data.log import InteractionLog
from felrec.errors import ConfigError
from felrec.fitted import FittedModel
from felrec.service.engine.committer import Committer, Progress
from felrec.service.engine.idempotency import IdempotencyStore
from felrec.service.engine.identity import begin
from felrec.service.engine.limits import Limits
from felrec.service.engine.serving_state import ServingState
from felrec.service.maintenance.importing import id_strings, note_of
from felrec.store.protocol import EMPTY_BASE, Contents, Store

_BLOCKS = 64  # taken in between two writes


class Named(NamedTuple):
    """A block in the language of the platform."""

    users: list[str]
    items: list[str]
    times: list[float]


def events_to_replay(contents: Contents, log: InteractionLog | None) -> int:
    """How many events a replay will take in, at most."""
    return len(contents.events) + (_base_end(contents, log) if log is not None else 0)


def replay_store(
    contents: Contents, model: FittedModel, new: Store, log: InteractionLog | None, progress: Progress | None = None
) -> None:
    """Fill a new store with a model that has seen nothing but the journal, block by block as it came.

    A store that began with the state of a run needs the log of that run: its events go before the journal, so that
    the new store has all events in its own journal.
    """
    check_log(contents, log)
    begin(new, model, empty=True)
    state = ServingState(model, new.load())
    committer = Committer(new, state, IdempotencyStore(0.0, new), Limits().block, 0)
    blocks = named_blocks(contents, log)
    while some := list(islice(blocks, _BLOCKS)):
        numbering = state.numbering()
        committer.take_in_blocks([numbering.block(*block) for block in some])
        if progress:
            progress(sum(len(block.users) for block in some))
    committer.finish(contents.attributes, contents.answers, _notes(contents, log))


def check_log(contents: Contents, log: InteractionLog | None) -> None:
    """Refuse another log than the one whose state the store began with, and none where there was one."""
    base = contents.identity.base
    if base != EMPTY_BASE and log is None:
        raise ConfigError("the store began with the state of a run; give the log of that run with --log")
    if log is not None and base.partition(":")[0] != log.fingerprint:
        raise ConfigError("--log is not the log that the store began with; give that one, unchanged")


def _base_end(contents: Contents, log: InteractionLog) -> int:
    """How many events of the log the store began with: the training and the validation part."""
    return min(len(log), int(contents.identity.base.rpartition(":")[2]))


def named_blocks(contents: Contents, log: InteractionLog | None) -> Iterator[Named]:
    """The base, cut into blocks as ever, then the journal; erased users are in neither."""
    if log is not None:
        yield from _base_blocks(contents, log)
    for records in contents.block_records:
        if len(records):
            yield Named(
                _names(contents.users, records["user"].tolist()),
                _names(contents.items, records["item"].tolist()),
                records["time"].tolist(),
            )


def _base_blocks(contents: Contents, log: InteractionLog) -> Iterator[Named]:
    users, items = id_strings(log.user_ids, "user"), id_strings(log.item_ids, "item")
    for block in log.events[: _base_end(contents, log)].blocks(Limits().block):
        rows = zip(block.users.tolist(), block.items.tolist(), block.times.tolist(), strict=True)
        # Rows of the base are those of the log, so an erased user is known without their id.
        kept = [(users[user], items[item], moment) for user, item, moment in rows if contents.users[user] is not None]
        if kept:
            yield Named(*map(list, zip(*kept, strict=True)))


def _names(ids: Sequence[str | None], rows: Sequence[int]) -> list[str]:
    return [str(ids[row]) for row in rows]


def _notes(contents: Contents, log: InteractionLog | None) -> dict[str, str]:
    notes = dict(contents.notes)
    if log is not None:
        name = note_of(log.fingerprint)
        notes[name] = str(max(int(notes.get(name, 0)), _base_end(contents, log)))
    return notes
