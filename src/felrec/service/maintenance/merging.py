"""Merge older events into a store that has begun: all events are applied again, in time order."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from felrec.data.events import BEGINNING
from felrec.data.log import InteractionLog
from felrec.service.engine.base_events import note_of
from felrec.service.engine.limits import Limits
from felrec.service.maintenance.importing import Imported, id_strings, refuse_future, taken_before
from felrec.service.maintenance.journal import Journal
from felrec.service.maintenance.replaying import journal_of, notes_to_keep
from felrec.store.protocol import Contents


class Merge(NamedTuple):
    """The journal and the notes of a store once a log is merged into it, and what that adds."""

    journal: Journal
    notes: dict[str, str]
    done: Imported
    reweighed: int  # of the events that it adds, those that the store has with another weight


def comes_late(contents: Contents, log: InteractionLog) -> bool:
    """Whether events of a log that a store may lack are older than its newest one."""
    before = taken_before(contents.identity.base, contents.notes, log)
    newest = max(contents.clock, float(contents.events.times.max(initial=BEGINNING)))
    return bool((log.times[before:] < newest).any()) and bool(len(contents.events) + len(contents.pairs))


def merge_log(contents: Contents, log: InteractionLog, base: InteractionLog | None) -> Merge:
    """Add the events of a log that a store lacks; `base` is the log that the store started with, if any.

    A store has those that it imported from this log, and those that it got in another way: see `Journal.had_before`.
    Events of users who were erased after an import of this log do not come back.
    """
    refuse_future(log, Limits())
    old = journal_of(contents, base)
    given = Journal(log.events, id_strings(log.user_ids, "user"), id_strings(log.item_ids, "item"))
    both = old.with_more(given)
    had = both.had_before(len(old))
    had[: taken_before(contents.identity.base, contents.notes, log)] = True
    new = both.only(np.append(np.arange(len(old)), len(old) + np.flatnonzero(~had)))
    newest = float(old.events.times.max(initial=BEGINNING))
    added = new.events.times[len(old) :]
    done = Imported(len(added), len(log) - len(added), int((added < newest).sum()))
    notes = {**notes_to_keep(contents, base), note_of(log.fingerprint): str(len(log))}
    return Merge(new.in_time_order(), notes, done, int(new.had_otherwise(len(old)).sum()))
