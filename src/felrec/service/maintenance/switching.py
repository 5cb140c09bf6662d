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
from felrec.store.protocol import SharedStore
from felrec.store.sqlite import SqliteStore

_BEHIND = 1_000  # most entries of the change log that may be missing: posts wait until they are applied
_SECONDS = 30.0  # for the writer to answer, and then for the new store to have everything
_LOOK = 0.1  # seconds between two looks at the new store


def switch_store(old_path: Path, new_path: Path, run: Path) -> None:
    """Have the writer of a store move all processes to a new one; returns once the new one has everything.

    StoreError if the new one does not follow the old one, is not followed by a process at the moment, or is too far
    behind; StoreMismatch if it does not belong to the run; Unanswered if nobody writes.
    """
    old_path, new_path = old_path.resolve(), new_path.resolve()
    with SqliteStore(old_path, "write", shared=True) as old:
        refuse_moved(old.name, old.notes())
        _check_new(old, new_path, run)
        place = run.resolve() if run.exists() else run  # weights that come with felrec have only a name
        _move(old, Moved(str(new_path), str(place)))
    _wait_until(lambda: _followed(new_path).complete, f"{new_path} is not complete yet; its felrec replay may be busy")


def _check_new(old: SharedStore, new_path: Path, run: Path) -> None:
    followed, there = _followed(new_path), old.standing().change
    if followed.store != old.name:
        raise StoreError(f"{new_path} follows {followed.store}, not {old.name}; give the store that follows this one")
    try:
        SqliteStore(new_path, "write").close()
    except StoreBusy:
        pass  # as it should be
    else:
        raise StoreError(f"nobody keeps {new_path} as new as {old.name}; start felrec replay … --follow first")
    if there - followed.change > _BEHIND:
        raise StoreError(f"{new_path} is {there - followed.change:,} changes behind; wait until it has caught up")
    with SqliteStore(new_path, "read") as new:
        check_identity(new.name, new.identity, runs.load(run))


def _followed(new_path: Path) -> Followed:
    with SqliteStore(new_path, "read") as new:
        followed = followed_by(new.notes())
    if followed is None:
        raise StoreError(f"{new_path} follows no store; make it with felrec replay … --follow")
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
