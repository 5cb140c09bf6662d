"""Have all processes that serve a store go on with another one, which follows it."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from pathlib import Path

from felrec import runs
from felrec.errors import StoreBusy, StoreError, Unanswered
from felrec.service.engine.cluster.change_log import read_entry
from felrec.service.engine.cluster.commands import Move, to_inbox
from felrec.service.engine.identity import check_identity
from felrec.service.engine.moving import Followed, Moved, followed_by, refuse_moved
from felrec.service.engine.outcomes import Outcome, read_outcome
from felrec.store.location import StoreLocation
from felrec.store.protocol import SharedStore
from felrec.store.sql_store import SqlStore

_BEHIND = 1_000  # most entries of the change log that may be missing: posts wait until they are applied
_SECONDS = 60.0  # for the writer to answer, and then for the new store to have everything
_LOOK = 0.1  # seconds between two looks at the new store


def switch_store(old: StoreLocation, new: StoreLocation, run: Path) -> None:
    """Have the writer of a store move all processes to a new one; returns once the new one has everything.

    The one transaction of the writer decides: if this process dies, all go on with the old store or with the new one.
    StoreError if the new one does not follow the old one, is not followed by a process at the moment, or is too far
    behind; StoreMismatch if it does not belong to the run; Unanswered if nobody writes.
    """
    with new.open("read") as seen:
        with old.open("write", shared=True) as left:
            refuse_moved(left.name, left.notes())
            _check_new(left, seen, new, run)
            place = run.resolve() if run.exists() else run  # weights that come with felrec have only a name
            _move(left, Moved.to(new, str(place)))
        busy = f"{new.name} is not complete yet; its felrec replay may be busy"
        _wait_until(lambda: _followed(seen).complete, busy)


def _check_new(old: SharedStore, seen: SqlStore, new: StoreLocation, run: Path) -> None:
    followed, there = _followed(seen), old.standing().change
    if followed.store != old.name:
        raise StoreError(f"{new.name} follows {followed.store}, not {old.name}; give the store that follows this one")
    try:
        new.open("write").close()
    except StoreBusy:
        pass  # as it should be
    else:
        raise StoreError(f"nobody keeps {new.name} as new as {old.name}; start felrec replay … --follow first")
    if there - followed.change > _BEHIND:
        raise StoreError(f"{new.name} is {there - followed.change:,} changes behind; wait until it has caught up")
    check_identity(new.name, seen.identity, runs.load(run))


def _followed(new: SqlStore) -> Followed:
    followed = followed_by(new.notes())
    if followed is None:
        raise StoreError(f"{new.name} follows no store; make it with felrec replay … --follow")
    return followed


def _move(old: SharedStore, to: Moved) -> None:
    """Ask the writer, and wait for its answer."""
    identifier, position = secrets.token_hex(8), old.standing().change
    old.append(*to_inbox(Move(to), identifier))
    until = time.monotonic() + _SECONDS
    while time.monotonic() < until:
        for change in old.changes(position, 1.0):
            position = change.number
            batch = read_entry(change.body).batch
            outcomes = [read_outcome(one.text) for one in batch.answered] if batch else []
            if answers := [one for one in outcomes if one.id == identifier]:
                _raise_refusal(answers[0])
                return
    raise Unanswered("no process writes to the store, so none has moved yet; the next one that does will do it", 1.0)


def _raise_refusal(outcome: Outcome) -> None:
    if outcome.refused:
        raise outcome.refused.error()


def _wait_until(true: Callable[[], bool], otherwise: str) -> None:
    until = time.monotonic() + _SECONDS
    while not true():
        if time.monotonic() > until:
            raise StoreError(otherwise)
        time.sleep(_LOOK)
